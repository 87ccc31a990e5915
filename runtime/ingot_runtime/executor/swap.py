"""Other weights for a loaded model, between two calls.

In: the contexts of a session, a bundle with the same code. Out: contexts that go on with its
weights, or, after any error, with the old ones. Not done here: opening and verifying (``loader``).
"""

from ..errors import BundleError, IncompatibleError, InputError
from ..format import header as head
from ..format.source import Source, in_file, read_plan
from ..loader.open_bundle import open_base, open_bundle
from ..loader.pool import ThreadPool
from ..loader.watch import Watch
from ..loader.weights import verified_weights
from .context import run_on_free

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..format.source import Bundle
    from .context import ExecutionContext
    from .loaded import Origin

_MAY_DIFFER = (
    head.WEIGHTS, head.TREE, head.SHARED, head.LOCK, head.DEBUG, head.SIGNATURE, head.SELFTEST,
)  # fmt: skip


def swap_weights(
    contexts: "tuple[ExecutionContext, ...]",
    bundle: "Bundle",
    digest: "str | None",
    timeout: "float | None",
) -> None:
    """Go on with the weights of `bundle`; see ``Session.swap_weights``."""
    try:
        origins = _origins(contexts, bundle, digest)
    except BundleError as error:
        raise in_file(error, bundle) from error.__cause__

    def swap() -> None:
        before = [context.loaded.origin for context in contexts]
        try:
            _go_on(contexts, origins)
        except BaseException:
            _go_on(contexts, before)
            raise

    _in_all(contexts, swap, timeout)


def _origins(
    contexts: "tuple[ExecutionContext, ...]", bundle: "Bundle", digest: "str | None"
) -> "list[Origin]":
    """Open, map and verify the bundle, while calls go on; return what each context needs of it."""
    loaded = contexts[0].loaded
    image, (keys, mode), ranges = loaded.image, loaded.trust, loaded.variant.ranges
    if contexts[0].attached is not None:
        why, do = "devices have copies of theirs", "load the bundle into a session of its own"
        raise InputError("weights of devices cannot be swapped", contexts[0].name, why, do)
    source = open_bundle(bundle, digest, keys)
    _require_same_code(loaded.source, source)
    read_plan(source)
    open_base(source, bundle)
    # Threads of its own: those of the contexts may be in a call.
    pool, watch = ThreadPool(image, loaded.pool.n_threads), Watch(image)
    weights, verifier = verified_weights(source, ranges, image, pool, watch, mode)
    pool.stop()
    source.require_unchanged()
    stamp = source.file.stamp
    return [
        (source, weights, verifier and verifier.another(it.loaded.pool, it.watch), stamp)
        for it in contexts
    ]


def _go_on(contexts: "tuple[ExecutionContext, ...]", origins: "list[Origin]") -> None:
    for context, origin in zip(contexts, origins, strict=True):
        context.go_on_with(origin)


def _in_all(
    contexts: "tuple[ExecutionContext, ...]", work: "Callable[[], None]", timeout: "float | None"
) -> None:
    """Work while no context is in a call; all swaps come to the contexts in the same order."""
    if not contexts:
        return work()
    return run_on_free(contexts[:1], lambda _: _in_all(contexts[1:], work, timeout), timeout)


def _require_same_code(old: Source, new: Source) -> None:
    """Raise ``IncompatibleError`` unless both have the same sections but for weights and what tells
    of them."""
    was, now = (
        {key: row.digest for key, row in source.by_key.items() if key[0] not in _MAY_DIFFER}
        for source in (old, new)
    )
    differing = [key for key in sorted({*was, *now}) if was.get(key) != now.get(key)]
    sizes = ((head.WEIGHTS, 0) in source.by_key for source in (old, new))
    if differing or len({*sizes}) > 1:
        names = ", ".join(f"{head.kind_name(kind)} {id_}" for kind, id_ in differing) or "weights 0"
        why = f"other than in {old.name}: {names}"
        do = "compile both by the same version with the same options; else load it as a session of its own"
        raise IncompatibleError("not the same code with other weights", new.name, why, do)
