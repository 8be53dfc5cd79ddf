"""Make what is otherwise made when it is first needed: the certificates, and the suite's own programs."""

from conformance.lab import load, pki, proxy

print(pki.ensure())
for program in (proxy.PROGRAM, load.PROGRAM, load.BOND_PROGRAM):
    print(program.ensure())
