#include "tests/bench/wide_graphs.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"

namespace pipec::bench {
namespace {

class Maker {
 public:
  Maker(int seed, int stages) : random_(seed) { graph_.stages = stages; }

  int Below(int limit) { return static_cast<int>(random_() % limit); }

  int Node(const std::set<int>& from) {
    CostNode node;
    node.id = absl::StrCat(graph_.nodes.size());
    node.time = std::pow(10, Share());
    node.send = 0.2 * std::pow(10, Share() - 0.5);
    const int made = static_cast<int>(graph_.nodes.size());
    graph_.nodes.push_back(node);
    for (const int other : from) graph_.edges.push_back({other, made});
    return made;
  }
  int Chain(int from, int length) {
    for (int k = 0; k < length; ++k) from = Node({from});
    return from;
  }
  CostGraph Take() { return std::move(graph_); }

 private:
  double Share() { return static_cast<double>(random_() >> 11) * 0x1p-53; }

  std::mt19937_64 random_;
  CostGraph graph_;
};

CostGraph Layered(int seed, int stages, int width, int layers) {
  Maker maker(seed, stages);
  std::vector<int> last = {maker.Node({})};
  for (int layer = 0; layer < layers; ++layer) {
    std::vector<int> now;
    for (int k = 0; k < width; ++k) {
      std::set<int> from = {last[k % last.size()]};
      for (int more = maker.Below(3); more > 0; --more)
        from.insert(last[maker.Below(static_cast<int>(last.size()))]);
      now.push_back(maker.Node(from));
    }
    last = now;
  }
  maker.Node({last.begin(), last.end()});
  return maker.Take();
}

CostGraph Inception(int seed, int stages, int modules, int longest) {
  Maker maker(seed, stages);
  int last = maker.Chain(maker.Node({}), 4);
  for (int module = 0; module < modules; ++module) {
    std::set<int> ends;
    for (int branch = 0; branch < 4; ++branch) ends.insert(maker.Chain(last, longest * (branch + 1) / 4));
    last = maker.Node(ends);
  }
  maker.Chain(last, 3);
  return maker.Take();
}

CostGraph Nasnet(int seed, int stages, int cells) {
  Maker maker(seed, stages);
  int before = maker.Node({}), last = maker.Node({before});
  for (int cell = 0; cell < cells; ++cell) {
    std::vector<int> hidden = {maker.Node({before}), maker.Node({last})};
    std::set<int> unused;
    for (int block = 0; block < 5; ++block) {
      std::set<int> both;
      for (int side = 0; side < 2; ++side) {
        const int from = hidden[maker.Below(static_cast<int>(hidden.size()))];
        unused.erase(from);
        both.insert(maker.Chain(from, 1 + maker.Below(3)));
      }
      hidden.push_back(maker.Node(both));
      unused.insert(hidden.back());
    }
    before = last;
    last = maker.Node(unused);
  }
  maker.Node({last});
  return maker.Take();
}

CostGraph Towers(int seed, int stages, int towers, int length) {
  Maker maker(seed, stages);
  const int first = maker.Node({});
  std::set<int> ends;
  for (int tower = 0; tower < towers; ++tower) ends.insert(maker.Chain(first, length));
  maker.Node(ends);
  return maker.Take();
}

CostGraph Near(int seed, int stages, int nodes, int window) {
  Maker maker(seed, stages);
  for (int k = 0; k < nodes; ++k) {
    std::set<int> from;
    for (int more = 1 + maker.Below(2); k > 0 && more > 0; --more)
      from.insert(k - 1 - maker.Below(std::min(k, window)));
    maker.Node(from);
  }
  return maker.Take();
}

}  // namespace

std::vector<NamedGraph> WideGraphs() {
  std::vector<NamedGraph> graphs;
  for (const int stages : {4, 8, 16}) {
    const auto add = [&](const std::string& kind, CostGraph graph) {
      graphs.push_back({absl::StrCat(kind, "_", stages), std::move(graph)});
    };
    add("layered_narrow", Layered(1, stages, 3, 60));
    add("layered", Layered(2, stages, 6, 40));
    add("layered_wide", Layered(3, stages, 20, 40));
    add("inception_narrow", Inception(4, stages, 11, 8));
    add("inception", Inception(5, stages, 11, 20));
    add("nasnet_narrow", Nasnet(6, stages, 3));
    add("nasnet", Nasnet(7, stages, 18));
    add("towers_narrow", Towers(8, stages, 3, 30));
    add("towers", Towers(9, stages, 8, 30));
    add("near_narrow", Near(10, stages, 60, 2));
    add("near", Near(11, stages, 300, 12));
    add("near_large", Near(12, stages, 1500, 8));
  }
  return graphs;
}

}  // namespace pipec::bench
