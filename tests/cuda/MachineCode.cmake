# Every file of kernels as nvcc makes machine code of it, with the flags of preset cuda: objects and what ptxas says of registers.
# machine_code_test.py reads both. Needs nvcc, no GPU; ccache keeps the objects where the build uses it.
find_program(nvcc nvcc HINTS ${cuda_include}/../bin)
find_program(cuobjdump cuobjdump HINTS ${cuda_include}/../bin ${pipec_cache}/nvidia-cuda-cuobjdump-13.2.51)
find_program(nvdisasm nvdisasm HINTS ${cuda_include}/../bin ${pipec_cache}/nvidia-cuda-nvdisasm-13.2.51)  # cuobjdump calls it
if(NOT nvcc OR NOT cuobjdump OR NOT nvdisasm)
  add_test(NAME cuda.machine_code
    COMMAND ${CMAKE_COMMAND} -E echo "skipped: nvcc, cuobjdump and nvdisasm are needed, found: ${nvcc}, ${cuobjdump}, ${nvdisasm}")
  set_tests_properties(cuda.machine_code PROPERTIES LABELS cuda SKIP_REGULAR_EXPRESSION "skipped: ")
  return()
endif()

set(folder ${CMAKE_CURRENT_BINARY_DIR}/machine_code)
file(MAKE_DIRECTORY ${folder})
file(GLOB kernels CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/runtime/device/cuda/kernels/*.cu ${CMAKE_SOURCE_DIR}/runtime/device/cuda/cub/*.cu)
set(objects)
foreach(kernel ${kernels})
  get_filename_component(name ${kernel} NAME_WE)
  set(object ${folder}/${name}.o)
  string(JOIN " " compile ${CMAKE_CXX_COMPILER_LAUNCHER} ${nvcc} -std=c++20 -O3 -DNDEBUG -I${CMAKE_SOURCE_DIR} -Werror all-warnings -Xptxas -v
    -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90 -MD -MF ${name}.d -c ${kernel} -o ${object})
  add_custom_command(OUTPUT ${object} BYPRODUCTS ${folder}/${name}.ptxas DEPENDS ${kernel} DEPFILE ${folder}/${name}.d
    WORKING_DIRECTORY ${folder} VERBATIM COMMENT "Machine code of ${name}.cu"
    COMMAND sh -c "${compile} 2>${name}.ptxas || { cat ${name}.ptxas; exit 1; }")
  list(APPEND objects ${object})
endforeach()
add_custom_target(cuda_machine_code ALL DEPENDS ${objects})
add_test(NAME cuda.machine_code COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/machine_code_test.py ${cuobjdump} ${objects})
get_filename_component(nvdisasm_folder ${nvdisasm} DIRECTORY)
set_tests_properties(cuda.machine_code PROPERTIES LABELS cuda ENVIRONMENT "NVDISASM_PATH=${nvdisasm_folder}")
