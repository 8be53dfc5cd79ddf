"""Caches: the first is read and written, the others are only read."""

from conformance.kernel import store
from conformance.support import paths

_ABOUT = '{"release": "%s", "source": "s", "patches": []}'


def use(monkeypatch, *folders):
    monkeypatch.setenv("CC_CONFORMANCE_CACHE", ":".join(map(str, folders)))


def test_what_is_there_is_found_in_any_cache_and_what_is_not_belongs_in_the_first(tmp_path, monkeypatch):
    own, image = tmp_path / "own", tmp_path / "image"
    use(monkeypatch, own, image)
    (image / "pki").mkdir(parents=True)
    assert paths.caches() == [own, image]
    assert paths.cache("pki") == own / "pki"
    assert paths.cached("pki") == image / "pki"
    assert paths.cached("other") == own / "other"
    (own / "pki").mkdir(parents=True)
    assert paths.cached("pki") == own / "pki"


def test_without_the_variable_the_cache_is_the_users(monkeypatch, tmp_path):
    monkeypatch.delenv("CC_CONFORMANCE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert paths.caches() == [tmp_path / "cc-conformance"]


def test_kernels_of_all_caches_are_known_and_a_name_means_that_of_the_first(tmp_path, monkeypatch):
    own, image = tmp_path / "own", tmp_path / "image"
    for cache, names in ((image, {"default": "aa", "other": "bb"}), (own, {"default": "cc"})):
        for name, digest in names.items():
            (cache / "kernels" / digest).mkdir(parents=True)
            (cache / "kernels" / digest / "kernel.json").write_text(_ABOUT % digest)
            (cache / "kernels" / "names").mkdir(exist_ok=True)
            (cache / "kernels" / "names" / name).write_text(f"{digest}\n")
    use(monkeypatch, own, image)
    assert {kernel.name: kernel.digest for kernel in store.kernels()} == {"default": "cc", "other": "bb"}
    assert store.find("other").binary == image / "kernels" / "bb" / "linux"
