// Doubles of the calls about devices.
#include <cuda_runtime_api.h>

#include <cstring>

#include "tests/cuda_emulation/call.h"

namespace cuda_emulation {
namespace {

cudaError_t CheckDevice(Machine& machine, int device) {
  if (machine.devices == 0) return cudaErrorNoDevice;
  if (device < 0 || device >= machine.devices)
    return machine.Refuse(cudaErrorInvalidDevice, "device " + std::to_string(device) + " is none of " +
                                                      std::to_string(machine.devices));
  return cudaSuccess;
}

}  // namespace

extern "C" cudaError_t cudaGetDeviceCount(int* count) {
  return DeviceCall("cudaGetDeviceCount", [&](Machine& machine) {
    *count = machine.devices;
    return machine.devices == 0 ? cudaErrorNoDevice : cudaSuccess;
  });
}

extern "C" cudaError_t cudaSetDevice(int device) {
  return DeviceCall("cudaSetDevice", [&](Machine& machine) {
    if (const cudaError_t error = CheckDevice(machine, device); error != cudaSuccess) return error;
    CurrentDevice() = device;
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaGetDevice(int* device) {
  return DeviceCall("cudaGetDevice", [&](Machine&) {
    *device = CurrentDevice();
    return cudaSuccess;
  });
}

// Limits are those of compute capability 9.0 (CUDA programming guide); it has few multiprocessors, so that tests of
// grids that are larger than the device stay small.
extern "C" cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return DeviceCall("cudaGetDeviceProperties", [&](Machine& machine) {
    if (const cudaError_t error = CheckDevice(machine, device); error != cudaSuccess) return error;
    *properties = {};
    std::strcpy(properties->name, "emulated GPU");
    properties->totalGlobalMem = machine.device_bytes;
    properties->major = 9;
    properties->minor = 0;
    properties->warpSize = 32;
    properties->multiProcessorCount = 4;
    properties->maxThreadsPerBlock = 1024;
    properties->maxThreadsPerMultiProcessor = 2048;
    properties->sharedMemPerBlock = 48 << 10;
    properties->sharedMemPerBlockOptin = 227 << 10;
    properties->sharedMemPerMultiprocessor = 228 << 10;
    properties->regsPerBlock = 64 << 10;
    properties->maxThreadsDim[0] = properties->maxThreadsDim[1] = 1024;
    properties->maxThreadsDim[2] = 64;
    properties->maxGridSize[0] = 0x7fffffff;
    properties->maxGridSize[1] = properties->maxGridSize[2] = 65535;
    properties->l2CacheSize = 50 << 20;
    properties->unifiedAddressing = 1;
    properties->concurrentKernels = 1;
    properties->asyncEngineCount = 3;
    properties->streamPrioritiesSupported = 1;
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return Call("cudaDeviceGetAttribute", [&](Machine& machine, auto&) {
    if (const cudaError_t error = CheckDevice(machine, device); error != cudaSuccess) return error;
    switch (attribute) {
      case cudaDevAttrComputeCapabilityMajor:
        *value = 9;
        return cudaSuccess;
      case cudaDevAttrComputeCapabilityMinor:
        *value = 0;
        return cudaSuccess;
      case cudaDevAttrMultiProcessorCount:
        *value = 4;
        return cudaSuccess;
      case cudaDevAttrMaxThreadsPerMultiProcessor:
        *value = 2048;
        return cudaSuccess;
      case cudaDevAttrL2CacheSize:
        *value = 50 << 20;
        return cudaSuccess;
      default:
        return machine.Refuse(cudaErrorInvalidValue, "a device attribute that the emulation does not know");
    }
  });
}

extern "C" cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return Call("cudaDeviceCanAccessPeer", [&](Machine& machine, auto&) {
    for (const int each : {device, peer}) {
      if (const cudaError_t error = CheckDevice(machine, each); error != cudaSuccess) return error;
    }
    *can = machine.can_be_peers && device != peer;
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  return Call("cudaDeviceEnablePeerAccess", [&](Machine& machine, auto&) {
    if (const cudaError_t error = CheckDevice(machine, peer); error != cudaSuccess) return error;
    if (flags != 0 || peer == CurrentDevice())
      return machine.Refuse(cudaErrorInvalidValue,
                            "cudaDeviceEnablePeerAccess of the device itself, or with flags");
    if (!machine.can_be_peers)
      return machine.Refuse(cudaErrorPeerAccessUnsupported,
                            "cudaDeviceEnablePeerAccess between devices that cannot reach each other");
    return machine.peers.insert({CurrentDevice(), peer}).second ? cudaSuccess
                                                                : cudaErrorPeerAccessAlreadyEnabled;
  });
}

extern "C" cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

extern "C" cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

}  // namespace cuda_emulation
