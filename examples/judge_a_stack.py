"""Measure a stack in a few cells of a zone, and judge what is in the results file: `python judge_a_stack.py quinn`.

The whole of the package's documented interface (`help(conformance)`).
"""

import sys

import conformance


def main(stack: str = "linux-tcp") -> int:
    try:
        bench = conformance.find_bench(conformance.Choice(stack=stack))
        # Packets of QUIC are no segments of TCP: each transport has zones of its own.
        zone = conformance.load_zone("cubic/heatmap-packets" if bench.profile == "packets" else "cubic/heatmap")
        asked = conformance.plan(conformance.cell_questions(zone, zone.smoke[:3]), trials=5, most_trials=20)
        for answer in conformance.execute(asked, bench, conformance.Store("results/example.jsonl")):
            for judged in answer.judged:
                print(answer.setting.cell.id, judged.verdict.status, judged.verdict.reason)
        # The file may hold other stacks, and earlier builds of this one, which are never judged together.
        scheme = bench.scheme(zone.algorithm)
        kept = [m for m in conformance.read_results("results/example.jsonl") if m.trial.scheme == scheme]
        print(zone.id, conformance.judge(zone, kept).status)
    except conformance.UserError as error:
        print(f"judge_a_stack: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
