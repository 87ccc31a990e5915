# Bundles as targets of a CMake project. Needs CMake 3.20 (DEPFILE for Makefiles), any generator for ninja or make.
#
#   ingot_add_bundle(NAME
#                    MODEL model.onnx        # relative to the current source folder
#                    [OUTPUT name.ingot]     # relative to the current binary folder; NAME.ingot if left out
#                    [TARGETS x86-64-v3 ...] # one variant each; this machine if left out
#                    [SHAPES x=1x3x224x224 ...]
#                    [OPTIONS ...]           # anything else that `ingot compile` takes
#                    [EXCLUDE_FROM_ALL])
#
# adds the target NAME, built by default, and sets its property INGOT_BUNDLE to the path of the bundle. The bundle is built when the
# model or a file that the model reads has changed, and what depends on it is built only if its bytes are others than before.

include_guard(GLOBAL)

find_program(INGOT_COMMAND ingot REQUIRED DOC "the command ingot")

function(ingot_add_bundle name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "EXCLUDE_FROM_ALL" "MODEL;OUTPUT" "TARGETS;SHAPES;OPTIONS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "ingot_add_bundle(${name}): unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_MODEL)
    message(FATAL_ERROR "ingot_add_bundle(${name}): MODEL is missing")
  endif()
  if(NOT arg_OUTPUT)
    set(arg_OUTPUT "${name}.ingot")
  endif()
  get_filename_component(model "${arg_MODEL}" ABSOLUTE)
  get_filename_component(bundle "${arg_OUTPUT}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_BINARY_DIR}")

  set(options ${arg_OPTIONS})
  foreach(target IN LISTS arg_TARGETS)
    list(APPEND options --target "${target}")
  endforeach()
  foreach(shape IN LISTS arg_SHAPES)
    list(APPEND options --shape "${shape}")
  endforeach()

  # From 3.28 on, CMake says that this command takes its jobs from make.
  set(jobs)
  if(CMAKE_VERSION VERSION_GREATER_EQUAL 3.28)
    set(jobs JOB_SERVER_AWARE TRUE)
  endif()

  add_custom_command(
    OUTPUT "${bundle}"
    COMMAND "${INGOT_COMMAND}" compile "${model}" -o "${bundle}" --depfile "${bundle}.d" --quiet ${options}
    DEPENDS "${model}"
    DEPFILE "${bundle}.d"
    COMMENT "Compiling ${arg_OUTPUT}"
    VERBATIM
    ${jobs})

  set(all ALL)
  if(arg_EXCLUDE_FROM_ALL)
    set(all)
  endif()
  add_custom_target(${name} ${all} DEPENDS "${bundle}")
  set_target_properties(${name} PROPERTIES INGOT_BUNDLE "${bundle}")
endfunction()
