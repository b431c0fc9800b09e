// cudaGetErrorName and cudaGetErrorString: the errors that the doubles return.
#include <cuda_runtime_api.h>

namespace {

struct ErrorText {
  cudaError_t error;
  const char* name;
  const char* text;
};

#define ERROR_TEXT(error, text) \
  { error, #error, text }
constexpr ErrorText kTexts[] = {
    ERROR_TEXT(cudaSuccess, "no error"),
    ERROR_TEXT(cudaErrorInvalidValue, "an argument is not acceptable"),
    ERROR_TEXT(cudaErrorMemoryAllocation, "out of memory"),
    ERROR_TEXT(cudaErrorInvalidConfiguration, "a launch of a size that the device does not have"),
    ERROR_TEXT(cudaErrorNoDevice, "no device is there"),
    ERROR_TEXT(cudaErrorInvalidDevice, "no device has this number"),
    ERROR_TEXT(cudaErrorInvalidResourceHandle, "a handle that is not valid here"),
    ERROR_TEXT(cudaErrorIllegalState, "not possible in this state"),
    ERROR_TEXT(cudaErrorNotReady, "not done yet"),
    ERROR_TEXT(cudaErrorIllegalAddress, "a kernel used an address that is not its to use"),
    ERROR_TEXT(cudaErrorLaunchTimeout, "waited too long"),
    ERROR_TEXT(cudaErrorPeerAccessAlreadyEnabled, "peer access was enabled before"),
    ERROR_TEXT(cudaErrorMisalignedAddress, "a kernel used an address that is not aligned"),
    ERROR_TEXT(cudaErrorLaunchFailure, "a kernel failed"),
    ERROR_TEXT(cudaErrorNotPermitted, "not permitted here"),
    ERROR_TEXT(cudaErrorNotSupported, "not supported"),
    ERROR_TEXT(cudaErrorStreamCaptureUnsupported, "not permitted while a stream captures"),
    ERROR_TEXT(cudaErrorStreamCaptureInvalidated, "the capture was made invalid by an earlier error"),
    ERROR_TEXT(cudaErrorStreamCaptureMerge, "would merge two captures"),
    ERROR_TEXT(cudaErrorStreamCaptureUnmatched, "the capture began on another stream"),
    ERROR_TEXT(cudaErrorStreamCaptureUnjoined, "the capture has work that its first stream did not wait for"),
    ERROR_TEXT(cudaErrorStreamCaptureIsolation, "would depend on work outside of the capture"),
    ERROR_TEXT(cudaErrorStreamCaptureImplicit, "the legacy stream would depend on a capture"),
    ERROR_TEXT(cudaErrorCapturedEvent, "the event was recorded in a capture"),
    ERROR_TEXT(cudaErrorStreamCaptureWrongThread, "the capture began in another thread"),
    ERROR_TEXT(cudaErrorGraphExecUpdateFailure, "the graph changed too much to be updated"),
    ERROR_TEXT(cudaErrorUnknown, "unknown"),
};

const ErrorText* Find(cudaError_t error) {
  for (const ErrorText& text : kTexts) {
    if (text.error == error) return &text;
  }
  return nullptr;
}

}  // namespace

extern "C" const char* cudaGetErrorName(cudaError_t error) {
  const ErrorText* text = Find(error);
  return text ? text->name : "unrecognized error code";
}

extern "C" const char* cudaGetErrorString(cudaError_t error) {
  const ErrorText* text = Find(error);
  return text ? text->text : "unrecognized error code";
}
