"""What one architecture brings to code generation, as data.

In: nothing. Out: ``TargetFamily`` and ``Feature``. Not done here: the families themselves (one file
each), parsing.
"""

from ingot_runtime.lazy_dataclass import dataclass

SCALAR = "scalar"
"""The tuning that is no processor's: loops without vectors, in short code."""


@dataclass(frozen=True, slots=True)
class Feature:
    """One CPU feature.

    ``name`` is the loader's (``ingot_runtime.format.features``), ``llvm_name`` the backend's;
    ``needs`` are the features (loader's names) that it builds on: adding it adds them, removing one
    of them removes it.
    """

    name: str
    llvm_name: str
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TargetFamily:
    """One architecture.

    ``levels`` are the names a user may write, lowest first; each is (name, LLVM cpu). ``tunings``
    are the names allowed after the colon: they order instructions, they never allow one.
    """

    arch: str
    triple: str
    linker_emulation: str
    levels: tuple[tuple[str, str], ...]
    features: tuple[Feature, ...]
    tunings: tuple[str, ...]
    page_size_bytes: int
    always_has_fma: bool

    def closed(self, names: frozenset[str]) -> frozenset[str]:
        """Add to `names` every feature that they build on."""
        table = {feature.name: feature for feature in self.features}
        found: set[str] = set()
        waiting = sorted(names)
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting.extend(table[name].needs)
        return frozenset(found)

    def without(self, names: frozenset[str], removed: str) -> frozenset[str]:
        """Take `removed` and every feature that builds on it out of `names`."""
        return frozenset(name for name in names if removed not in self.closed(frozenset((name,))))
