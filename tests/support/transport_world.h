// Some ranks of one transport, each with a device of its own, and messages in the devices' memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "runtime/device/device.h"
#include "runtime/transport/local/local_transport.h"
#include "runtime/transport/transport.h"

namespace pipec {

class TransportWorld {
 public:
  using MakeDevice = std::function<std::unique_ptr<Device>(int rank)>;
  using Connect = std::function<std::unique_ptr<Transport>(int rank, Device& device)>;

  virtual ~TransportWorld() = default;
  TransportWorld(int ranks, const MakeDevice& make_device, const Connect& connect) {
    for (int r = 0; r < ranks; ++r) {
      devices_.push_back(make_device(r));
      streams_.push_back(devices_[r]->NewStream().value());
      transports_.push_back(connect(r, *devices_[r]));
    }
    std::vector<std::thread> starting;
    for (int r = 0; r < ranks; ++r) {
      starting.emplace_back([this, r, ranks] {
        std::vector<Route> routes;
        for (int peer = 0; peer < ranks; ++peer) {
          if (peer != r) routes.insert(routes.end(), {{peer, true}, {peer, false}});
        }
        EXPECT_TRUE(transports_[r]->Start(routes).ok());
      });
    }
    for (std::thread& thread : starting) thread.join();
  }

  Transport& transport(int rank) { return *transports_[rank]; }
  Stream& stream(int rank) { return *streams_[rank]; }
  std::unique_ptr<Event> NewEvent(int rank) { return devices_[rank]->NewEvent().value(); }
  // On the rank's device; zeroes.
  template <typename T>
  Piece NewPiece(int rank, size_t elements) {
    const auto bytes = static_cast<int64_t>(elements * sizeof(T));
    return {devices_[rank]->Allocate(bytes).value(), bytes};
  }
  template <typename T>
  void Write(int rank, const Piece& piece, const std::vector<T>& values) {
    devices_[rank]->CopyToDevice(stream(rank), piece.data, values.data(), piece.bytes).IgnoreError();
  }
  // What the stream's work so far leaves there.
  template <typename T>
  std::vector<T> Read(int rank, const Piece& piece) {
    std::vector<T> values(piece.bytes / sizeof(T));
    devices_[rank]->CopyToHost(stream(rank), values.data(), piece.data, piece.bytes).IgnoreError();
    stream(rank).Synchronize(absl::Now() + absl::Seconds(30)).IgnoreError();
    return values;
  }
  // The rank's stream goes on behind the event.
  absl::Status Wait(int rank, Event& event, absl::Duration limit = absl::Seconds(30)) {
    return stream(rank).Wait(event, absl::Now() + limit);
  }

 private:
  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<std::unique_ptr<Transport>> transports_;
};

// A world of the local transport, with its hub.
class LocalWorld : private LocalHub, public TransportWorld {
 public:
  LocalWorld(int ranks, const TransportWorld::MakeDevice& make_device, LocalOptions options = {})
      : LocalHub(ranks, std::move(options)),
        TransportWorld(ranks, make_device,
                       [this](int rank, Device& device) { return LocalHub::Connect(rank, device); }) {}
};

}  // namespace pipec
