# Where each dependency comes from. All are Debian packages but onnx, which tools/setup.sh builds once.
find_package(absl REQUIRED)
find_package(Protobuf REQUIRED)
find_package(nlohmann_json REQUIRED)
# Debian's own CMake file for oneDNN also asks for OpenCL's headers, which nothing here uses.
find_library(dnnl_library dnnl REQUIRED)
find_path(dnnl_include dnnl.hpp REQUIRED)
add_library(DNNL::dnnl UNKNOWN IMPORTED)
set_target_properties(DNNL::dnnl PROPERTIES IMPORTED_LOCATION ${dnnl_library} INTERFACE_INCLUDE_DIRECTORIES ${dnnl_include})
find_package(OpenMP REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(libzip REQUIRED IMPORTED_TARGET libzip)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)

if(DEFINED ENV{PIPEC_CACHE})
  set(pipec_cache $ENV{PIPEC_CACHE})
elseif(DEFINED ENV{XDG_CACHE_HOME})
  set(pipec_cache $ENV{XDG_CACHE_HOME}/pipec)
else()
  set(pipec_cache $ENV{HOME}/.cache/pipec)
endif()
find_package(ONNX 1.22.0 REQUIRED CONFIG PATHS ${pipec_cache}/onnx-1.22.0 NO_DEFAULT_PATH)

find_package(LLVM 14 REQUIRED CONFIG)

# Accelerators and other hosts: found if present, and `pipec --list-devices` says what was not. Preset cuda insists.
option(PIPEC_CUDA "stop if the CUDA toolkit or NCCL is missing" OFF)
if(PIPEC_CUDA)
  find_package(CUDAToolkit REQUIRED)
else()
  find_package(CUDAToolkit QUIET)
endif()
# The headers alone are enough for the device's sources and their emulation.
find_path(cuda_include cuda_runtime.h HINTS ${CUDAToolkit_INCLUDE_DIRS} /usr/local/cuda/include)
find_path(cudnn_include cudnn.h HINTS ${cuda_include})
if(PIPEC_CUDA)
  find_library(cudnn_library cudnn HINTS ${CUDAToolkit_LIBRARY_DIR} REQUIRED)
endif()
find_path(nccl_include nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ${cuda_include})
find_library(nccl_library nccl HINTS ${CUDAToolkit_LIBRARY_DIR} ${cuda_include}/../lib)
if(PIPEC_CUDA AND NOT (nccl_include AND nccl_library))
  message(FATAL_ERROR "NCCL is missing: no nccl.h or libnccl beside the CUDA toolkit (${CUDAToolkit_INCLUDE_DIRS}) or in the system's folders")
endif()
find_package(MPI QUIET COMPONENTS CXX)

# The flags every room shares.
add_library(pipec_options INTERFACE)
target_compile_options(pipec_options INTERFACE "$<$<COMPILE_LANGUAGE:C,CXX>:-Wall;-Wextra;-Wno-sign-compare;-Wno-missing-field-initializers>")
# GCC 12 has these wrong where it inlines variants, inlined vectors and strings (its bug 105651, of strings).
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(pipec_options INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized;-Wno-restrict>")
endif()
