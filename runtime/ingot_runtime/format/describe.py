"""A bundle described in plain values: sections, devices, variants, inputs and outputs.

In: a checked source. Out: a dict of str, int, list, dict; or lines. Not done here: kernels and
their source nodes (``ingot_artifacts.inspect``).
"""

from .header import VERSION_MAJOR, Section, kind_name
from .plan import AlternativePlan, BundlePlan
from .schema import record_dict
from .source import Source, read_plan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# How a row of each group is printed.
_FORMS = {
    "inputs": "  {name}: {dtype}{shape}",
    "outputs": "  {name}: {dtype}{shape}",
    "devices": "  {name}: {kind}:{id}",
    "libraries": "  {kind} {target}: {kernels}, needs {features}",
    "alternatives": "  {kind} {target}: {kernels}, needs {features}, for {devices}",
    "variants": "  {target}: {kernels}, workspace {workspace_bytes}, needs {features}{made_for}",
    "sections": "  {kind} {id}: {size_bytes} bytes at {offset}",
}


def describe_source(source: Source) -> "dict[str, Any]":
    """Return ``format``, ``digest``, ``size_bytes``, ``sections``, and what the plan says."""
    plan = read_plan(source)
    return {
        "format": f"{VERSION_MAJOR}.{source.minor}",
        "digest": source.root_digest.hex(),
        "size_bytes": source.size_bytes,
        "sections": [_section(row) for row in source.sections],
        "shared": _shared(source),
        **describe_plan(plan),
    }


def describe_plan(plan: BundlePlan) -> "dict[str, Any]":
    """Return the manifest with a name of its own for each count, and None for no library."""
    described: dict[str, Any] = record_dict(plan, plan)
    described["alternatives"] = [_alternative(each, plan) for each in plan.alternatives]
    for row in described["libraries"] + described["alternatives"] + described["variants"]:
        row["kernel_count"] = row.pop("kernels")
    for row in described["variants"]:
        row.setdefault("processors", [])
    for row in described["devices"]:
        row["library"] = row["library"] if row["library"] >= 0 else None
    return described


def _alternative(each: AlternativePlan, plan: BundlePlan) -> "dict[str, object]":
    devices = [{"name": plan.devices[at].name, "id": id_} for at, id_ in each.ids.items()]
    return {**record_dict(each.code, plan), "library": each.library, "devices": devices}


def _section(row: Section) -> "dict[str, object]":
    # Digests of the weights are in their tree.
    digest = row.digest.hex() if any(row.digest) else None
    place = {"offset": row.offset, "size_bytes": row.size_bytes}
    return {"kind": kind_name(row.kind), "id": row.id, **place, "digest": digest}


def _shared(source: Source) -> "dict[str, object] | None":
    if source.shared is None:
        return None
    count = sum(row[2] for row in source.shared.rows)
    return {"name": source.shared.name, "digest": source.shared.digest, "size_bytes": count}


def lines_of(described: "dict[str, Any]") -> list[str]:
    """Return a few lines for people."""
    lines = [
        "model {model}, format {format}, {size_bytes} bytes".format(**described),
        f"root digest {described['digest']}",
    ]
    if described["shared"]:
        form = "shared: {size_bytes} bytes of weights in {name}, {digest}"
        lines.append(form.format(**described["shared"]))
    for group, form in _FORMS.items():
        if described[group]:
            lines.append(f"{group}:")
            lines += [form.format(**_printed(row)) for row in described[group]]
    return lines


def _printed(row: "dict[str, Any]") -> "dict[str, Any]":
    """Return the row with its lists as texts: no name is in quotes."""
    workspaces = (
        f"{size} bytes" if size else "as calls need" for size in row.get("workspace_bytes", ())
    )
    count = row.get("kernel_count")
    return {
        **row,
        "kernels": f"{count} kernel{'s' * (count != 1)}",
        "devices": ", ".join(it["name"] for it in row.get("devices", ())),
        "shape": f"[{', '.join(map(str, row.get('shape', ())))}]",
        "features": ", ".join(row.get("features", ())) or "nothing",
        "workspace_bytes": ", ".join(workspaces),
        "made_for": f", for {', '.join(row['processors'])}" if row.get("processors") else "",
    }
