// CUDA's driver as far as cuDNN needs it to compile a plan for a GPU that is not there: it keeps kernels that it is
// given, and refuses everything else. What cuDNN looks for must be there.
extern "C" {

// CUDA_ERROR_NO_DEVICE.
#define PIPEC_REFUSED(name) \
  int name() { return 100; }
PIPEC_REFUSED(cuCtxGetCurrent)
PIPEC_REFUSED(cuCtxGetLimit)
PIPEC_REFUSED(cuCtxPopCurrent)
PIPEC_REFUSED(cuCtxPushCurrent)
PIPEC_REFUSED(cuDeviceGet)
PIPEC_REFUSED(cuDeviceGetCount)
PIPEC_REFUSED(cuDriverGetVersion)
PIPEC_REFUSED(cuGetErrorName)
PIPEC_REFUSED(cuGetErrorString)
PIPEC_REFUSED(cuInit)
PIPEC_REFUSED(cuKernelGetAttribute)
PIPEC_REFUSED(cuLaunchCooperativeKernel)
PIPEC_REFUSED(cuLaunchKernel)
PIPEC_REFUSED(cuLaunchKernelEx)
PIPEC_REFUSED(cuLibraryLoadFromFile)
PIPEC_REFUSED(cuLinkAddData)
PIPEC_REFUSED(cuLinkComplete)
PIPEC_REFUSED(cuLinkCreate)
PIPEC_REFUSED(cuLinkDestroy)
PIPEC_REFUSED(cuOccupancyMaxPotentialClusterSize)
PIPEC_REFUSED(cuStreamGetCtx)

int cuKernelSetAttribute() { return 0; }
int cuLibraryUnload() { return 0; }
int cuLibraryLoadData(void** library) {
  static int kept;
  *library = &kept;
  return 0;
}
int cuLibraryGetKernel(void** kernel) {
  static int kept;
  *kernel = &kept;
  return 0;
}

}  // extern "C"
