"""The visible list of classes that inputs and artifacts are made of: nothing else is ever built
from bytes of the cache.

In: nothing. Out: ``ARTIFACT_TYPES``. Not done here: the encoding (``engine.actions.codec``). The
modules are imported when one of their values is met, so that a build in which everything is there
already imports few of them.
"""

_MODULES = {
    "ingot_build_rules.rules.bundle": "BundleParts BundleInputs",
    "ingot_build_rules.rules.c_source": "CSource CSourceInputs",
    "ingot_build_rules.rules.codegen": "CodegenInputs",
    "ingot_build_rules.rules.codegen_main": "MainInputs",
    "ingot_build_rules.rules.codegen_support": "SupportInputs",
    "ingot_build_rules.rules.default_input": "DefaultInput",
    "ingot_build_rules.rules.digest_weights": "DigestInputs",
    "ingot_build_rules.rules.fuse": "FuseInputs Fused FusedConstant",
    "ingot_build_rules.rules.claim": "ClaimInputs",
    "ingot_build_rules.rules.codegen_claimed": "CodegenClaimedInputs",
    "ingot_build_rules.rules.compile_library": "ModelLibraryInputs",
    "ingot_build_rules.rules.compile_loader": "LoaderInputs",
    "ingot_build_rules.rules.compile_wasm": "WasmInputs",
    "ingot_build_rules.rules.op_option": "OpOption",
    "ingot_build_rules.rules.tuning_option": "TuningOption",
    "ingot_build_rules.rules.compile_options": "CompileOptions DeviceOption PluginOption",
    "ingot_build_rules.rules.join_libraries": "JoinInputs",
    "ingot_build_rules.rules.import_model": "ImportInputs Imported",
    "ingot_build_rules.rules.infer_types": "InferInputs TypedGraph",
    "ingot_build_rules.rules.interface": "Interface NamedTensor",
    "ingot_build_rules.rules.kernel_object": "KernelObject",
    "ingot_build_rules.rules.link": "LinkInputs",
    "ingot_build_rules.rules.lower": "LowerInputs",
    "ingot_build_rules.rules.lower_claimed": "LowerClaimedInputs",
    "ingot_build_rules.rules.lowered": "Lowered",
    "ingot_build_rules.rules.main_object": "MainObject",
    "ingot_build_rules.rules.make_library": "LibraryInputs",
    "ingot_build_rules.rules.model_file": "FileState",
    "ingot_build_rules.rules.names": "NamesInputs",
    "ingot_build_rules.rules.optimize": "OptimizeInputs",
    "ingot_build_rules.rules.pack_constant": "PackInputs",
    "ingot_build_rules.rules.packed_constant": "PackedConstant",
    "ingot_build_rules.rules.place": "PlaceInputs",
    "ingot_build_rules.rules.plan_memory": "PlanInputs",
    "ingot_build_rules.rules.rewrite": "RewriteInputs",
    "ingot_build_rules.rules.run_test": "RunTestInputs",
    "ingot_build_rules.rules.variant": "Alternative Library Variant",
    "ingot_compiler.frontend.imported": "DeclaredType ImportedModel ImportedNode ImportedRegion",
    "ingot_compiler.ir.dims": "Call Sum Symbol",
    "ingot_compiler.ir.graph": "ConstantSource Graph Names Node OptimizedGraph",
    "ingot_compiler.ir.message": "InputRef Message NodeRef OutputRef",
    "ingot_compiler.ir.profile": "SizeRange",
    "ingot_compiler.ir.refusal": "Refusal",
    "ingot_compiler.ir.types": "TensorType",
    "ingot_compiler.lowering.fused": (
        "BufferSpec Copy FusedGraph Group Grow HeldPair HoldState IfStep Launch LoopStep Operand Requirement "
        "Specialisation SymbolRead SymbolSet View"
    ),
    "ingot_compiler.lowering.group_steps": "Choice GroupLaunch GroupSteps",
    "ingot_compiler.lowering.loop_parts": (
        "Digits PackedPanels RegisterTile SplitFactors StrassenTile Team"
    ),
    "ingot_compiler.lowering.loop_values": ("Address Apply Compare Constant FromIndex Load Local"),
    "ingot_compiler.lowering.loops": (
        "Attention BlockedProduct Buffer CallExtern Contraction Depthwise DepthwisePlane Filter For If Let "
        "LetIndex LoopProgram Reduce Require Store Transpose Winograd"
    ),
    "ingot_compiler.lowering.method": "Method",
    "ingot_compiler.lowering.strassen": "StrassenShape",
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
