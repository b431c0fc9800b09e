#include "compiler/cost/replicas.h"

#include "absl/strings/str_cat.h"
#include "compiler/cost/cluster_file.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

bool EqualRates(const DeviceProfile& a, const DeviceProfile& b) {
  return a.name == b.name && a.memory_bytes == b.memory_bytes && a.link == b.link;
}

absl::Status CheckEqual(const Cluster& cluster, int ranks, int replica) {
  const int first = replica * ranks;
  for (int a = 0; a < ranks; ++a) {
    if (!EqualRates(cluster.devices[a], cluster.devices[first + a])) {
      return absl::InvalidArgumentError(
          absl::StrCat("device ", first + a, " (", cluster.devices[first + a].name, ") runs in replica ",
                       replica, " what device ", a, " (", cluster.devices[a].name,
                       ") runs in replica 0, and is another; replicas need equal devices"));
    }
    for (int b = 0; b < a; ++b) {
      if (cluster.LinkBetween(a, b) == cluster.LinkBetween(first + a, first + b)) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "the link between devices ", first + b, " and ", first + a, " is another than that between ", b,
          " and ", a, ", which is the same in replica 0; replicas need equal links"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Cluster> FirstReplica(Cluster cluster, int ranks, int replicas) {
  std::vector<Link> links;
  for (int replica = 1; replica < replicas; ++replica) {
    RETURN_IF_ERROR(CheckEqual(cluster, ranks, replica));
    for (int rank = 0; rank < ranks; ++rank) {
      const Link link = cluster.LinkBetween(rank, replica * ranks + rank);
      if (replica == 1) links.push_back(link);
      links[rank] = Slower(links[rank], link);
    }
  }
  ASSIGN_OR_RETURN(cluster, FirstDevices(std::move(cluster), ranks));
  cluster.replica_links = std::move(links);
  return cluster;
}

}  // namespace pipec
