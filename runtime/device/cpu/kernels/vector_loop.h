// One loop, compiled for the widest vectors of the machine that runs it: a binary for any x86-64, at the
// speed of AVX2 where there is AVX2.
#pragma once

#if defined(__x86_64__)
#define PIPEC_WIDE __attribute__((target("avx2,fma")))
#else
#define PIPEC_WIDE
#endif
// What runs inside such a loop must be inlined into it, or it keeps the narrow instructions.
#define PIPEC_INLINE inline __attribute__((always_inline))

namespace pipec::cpu {

inline bool HasWideVectors() {
#if defined(__x86_64__)
  static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return has;
#else
  return false;
#endif
}

template <typename Loop, typename... Arguments>
PIPEC_WIDE void CallWide(Arguments... arguments) {
  Loop::Run(arguments...);
}

template <typename Loop, typename... Arguments>
void CallNarrow(Arguments... arguments) {
  Loop::Run(arguments...);
}

// Loop is a class with a static PIPEC_INLINE void Run(arguments...). Arguments are passed by value.
template <typename Loop, typename... Arguments>
void CallVectorised(Arguments... arguments) {
  if (HasWideVectors()) {
    CallWide<Loop>(arguments...);
  } else {
    CallNarrow<Loop>(arguments...);
  }
}

}  // namespace pipec::cpu
