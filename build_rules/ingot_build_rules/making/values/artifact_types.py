"""The visible list of classes that inputs and artifacts are made of: nothing else is ever built
from bytes of the cache.

In: nothing. Out: ``ARTIFACT_TYPES``. Not done here: the encoding (``engine.actions.codec``). The
modules are imported when one of their values is met, so that a build in which everything is there
already imports few of them.
"""

_MODULES = {
    "ingot_build_rules.making.rules.bundle": "BundleParts BundleInputs",
    "ingot_build_rules.making.rules.c_source": "CSource CSourceInputs",
    "ingot_build_rules.making.rules.codegen": "CodegenInputs",
    "ingot_build_rules.making.rules.codegen_main": "MainInputs",
    "ingot_build_rules.making.rules.codegen_support": "SupportInputs",
    "ingot_build_rules.making.values.default_input": "DefaultInput",
    "ingot_build_rules.making.rules.digest_weights": "DigestInputs",
    "ingot_build_rules.making.rules.fuse": "FuseInputs Fused FusedConstant",
    "ingot_build_rules.making.rules.claim": "ClaimInputs",
    "ingot_build_rules.making.rules.codegen_claimed": "CodegenClaimedInputs",
    "ingot_build_rules.making.rules.compile_library": "ModelLibraryInputs",
    "ingot_build_rules.making.rules.compile_loader": "LoaderInputs",
    "ingot_build_rules.making.rules.compile_wasm": "WasmInputs",
    "ingot_build_rules.making.options.op_option": "OpOption",
    "ingot_build_rules.making.options.tuning_option": "TuningOption",
    "ingot_build_rules.making.options.compile_options": "CompileOptions DeviceOption PluginOption",
    "ingot_build_rules.making.rules.join_libraries": "JoinInputs",
    "ingot_build_rules.making.rules.import_model": "ImportInputs Imported",
    "ingot_build_rules.making.rules.infer_types": "InferInputs TypedGraph",
    "ingot_build_rules.making.values.interface": "Interface NamedTensor",
    "ingot_build_rules.making.values.native_objects": "KernelObject MainObject",
    "ingot_build_rules.making.rules.link": "LinkInputs",
    "ingot_build_rules.making.rules.lower": "LowerInputs",
    "ingot_build_rules.making.rules.lower_claimed": "LowerClaimedInputs",
    "ingot_build_rules.making.values.lowered": "Lowered",
    "ingot_build_rules.making.rules.make_library": "LibraryInputs",
    "ingot_build_rules.making.values.model_file": "FileState",
    "ingot_build_rules.making.rules.names": "NamesInputs",
    "ingot_build_rules.making.rules.optimize": "OptimizeInputs",
    "ingot_build_rules.making.rules.pack_constant": "PackInputs",
    "ingot_build_rules.making.values.packed_constant": "PackedConstant",
    "ingot_build_rules.making.rules.place": "PlaceInputs",
    "ingot_build_rules.making.rules.plan_memory": "PlanInputs",
    "ingot_build_rules.making.rules.rewrite": "RewriteInputs",
    "ingot_build_rules.making.rules.run_test": "RunTestInputs",
    "ingot_build_rules.making.rules.variant": "Alternative Library Variant",
    "ingot_compiler.frontend.model.imported": "DeclaredType ImportedModel ImportedNode ImportedRegion",
    "ingot_compiler.ir.dims": "Call Sum Symbol",
    "ingot_compiler.ir.graph": "ConstantSource Graph Names Node OptimizedGraph",
    "ingot_compiler.ir.message": "InputRef Message NodeRef OutputRef",
    "ingot_compiler.ir.sizes.profile": "SizeRange",
    "ingot_compiler.ir.refusal": "Refusal",
    "ingot_compiler.ir.types": "TensorType",
    "ingot_compiler.lowering.groups.fused": (
        "BufferSpec Copy FusedGraph Group Grow HeldPair HoldState IfStep Launch LoopStep Operand Requirement "
        "Specialisation SymbolRead SymbolSet View"
    ),
    "ingot_compiler.lowering.groups.group_steps": "Choice GroupLaunch GroupSteps",
    "ingot_compiler.lowering.loops.loop_parts": (
        "CarriedSums Digits PackedPanels RegisterTile SplitFactors StrassenTile Team"
    ),
    "ingot_compiler.lowering.loops.loop_values": (
        "Address Apply Compare Constant FromIndex Load Local"
    ),
    "ingot_compiler.lowering.loops.program": (
        "Attention BlockedProduct Buffer CallExtern Contraction Depthwise DepthwisePlane Filter For If Let "
        "LetIndex LoopProgram Reduce Require Store Transpose Winograd"
    ),
    "ingot_compiler.lowering.groups.method": "Method",
    "ingot_compiler.lowering.loops.strassen": "StrassenShape",
    "ingot_compiler.memory.memory_plan": "MemoryPlan BufferPlacement PoolPlan",
    "ingot_compiler.placement.device_costs": "DeviceCosts",
    "ingot_compiler.placement.place_reason": "PlaceReason",
    "ingot_compiler.plugins.settings": "PluginSettings",
    "ingot_compiler.placement.placed": "PlacedGraph",
    "ingot_compiler.placement.virtual_device": "DeclaredDevice VirtualDevice",
    "ingot_runtime.option_ref": "OptionClause OptionRef",
}
ARTIFACT_TYPES = {name: module for module, names in _MODULES.items() for name in names.split()}
"""Name of a class -> its module."""
