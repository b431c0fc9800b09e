#include "tests/bench/partition_graph.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "runtime/base/status.h"

namespace pipec::bench {
namespace {

absl::StatusOr<std::string> ReadText(const std::string& path) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat(path, ": cannot be read"));
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// "key=1.5" or "key=[1; 2]" in a line of pipedream's: the sum.
absl::StatusOr<double> Field(const std::string& line, absl::string_view key) {
  const size_t at = line.find(absl::StrCat(key, "="));
  if (at == std::string::npos) return absl::InvalidArgumentError(absl::StrCat("no ", key, " in: ", line));
  absl::string_view value = absl::string_view(line).substr(at + key.size() + 1);
  value = value.substr(0, value.find(','));
  absl::ConsumePrefix(&value, "[");
  absl::ConsumeSuffix(&value, "]");
  double sum = 0;
  for (absl::string_view part : absl::StrSplit(value, ';')) {
    double number = 0;
    if (!absl::SimpleAtod(absl::StripAsciiWhitespace(part), &number))
      return absl::InvalidArgumentError(absl::StrCat(key, " is no number in: ", line));
    sum += number;
  }
  return sum;
}

// Numbers of the strongly connected components, so that edges lead to higher ones (Tarjan): depth first, which
// makes an order that is good to cut.
std::vector<int> Components(const std::vector<std::vector<int>>& after) {
  const int n = static_cast<int>(after.size());
  std::vector<int> seen(n, -1), low(n), component(n, -1), stack;
  int time = 0, components = 0;
  const std::function<void(int)> visit = [&](int node) {
    low[node] = seen[node] = time++;
    stack.push_back(node);
    for (int next : after[node]) {
      if (seen[next] < 0) visit(next);
      if (component[next] < 0) low[node] = std::min(low[node], low[next]);
    }
    if (low[node] != seen[node]) return;
    int member = -1;
    do {
      member = stack.back();
      stack.pop_back();
      component[member] = components;
    } while (member != node);
    ++components;
  };
  for (int node = 0; node < n; ++node) {
    if (seen[node] < 0) visit(node);
  }
  for (int& number : component) number = components - 1 - number;
  return component;
}

// By node: the items that make or use its output.
std::vector<std::set<int>> UsersOf(const CostGraph& graph, const std::vector<int>& item_of) {
  std::vector<std::set<int>> users(graph.nodes.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) users[i].insert(item_of[i]);
  for (const CostEdge& edge : graph.edges) users[edge.from].insert(item_of[edge.to]);
  return users;
}

// An item that takes no time (nor memory, where that may be short), has an order with one other only and shares all
// its tensors with that one costs least in the other's stage. Ties such items to the other in `after`; whether
// there were any.
bool JoinIdle(const CostGraph& graph, const std::vector<int>& item_of, std::vector<std::vector<int>>& after) {
  double bytes = 0;
  for (const CostNode& node : graph.nodes) bytes += node.bytes;
  const bool enough_memory = bytes <= graph.bytes_of_stage;
  std::vector<char> idle(graph.nodes.size(), 1);              // by item
  std::vector<std::set<int>> neighbours(graph.nodes.size());  // by item, in the order
  std::vector<int> node_of(graph.nodes.size());               // one of the item's
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    node_of[item_of[i]] = static_cast<int>(i);
    if (graph.nodes[i].time > 0 || (graph.nodes[i].bytes > 0 && !enough_memory)) idle[item_of[i]] = 0;
    for (int later : after[i]) {
      if (item_of[later] == item_of[i]) continue;
      neighbours[item_of[i]].insert(item_of[later]);
      neighbours[item_of[later]].insert(item_of[i]);
    }
  }
  for (const std::set<int>& users : UsersOf(graph, item_of)) {
    for (int item : users) {
      if (users.size() > 1 && neighbours[item].size() == 1 && !users.count(*neighbours[item].begin()))
        idle[item] = 0;
    }
  }
  bool some = false;
  for (size_t item = 0; item < neighbours.size(); ++item) {
    if (!idle[item] || neighbours[item].size() != 1) continue;
    const int node = node_of[item], other = node_of[*neighbours[item].begin()];
    after[node].push_back(other);
    after[other].push_back(node);
    some = true;
  }
  return some;
}

GraphProblem FromItems(const CostGraph& graph, int stages, std::vector<int> item_of,
                       const std::vector<std::vector<int>>& after) {
  GraphProblem result{{}, std::move(item_of)};
  PartitionProblem& problem = result.problem;
  problem.stages = stages;
  problem.memory_limit = static_cast<int64_t>(graph.bytes_of_stage);
  problem.items.resize(1 + *std::max_element(result.item_of.begin(), result.item_of.end()));
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    PartitionItem& item = problem.items[result.item_of[i]];
    item.seconds += graph.nodes[i].time;
    item.parameter_bytes += static_cast<int64_t>(graph.nodes[i].bytes);
    for (int later : after[i]) {
      if (result.item_of[later] != result.item_of[i])
        problem.order.emplace_back(result.item_of[i], result.item_of[later]);
    }
  }
  const std::vector<std::set<int>> users = UsersOf(graph, result.item_of);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (users[i].size() < 2) continue;
    const int first = *users[i].begin();
    problem.tensors.push_back(
        {first, {std::next(users[i].begin()), users[i].end()}, graph.nodes[i].send, false});
  }
  return result;
}

}  // namespace

absl::StatusOr<CostGraph> ReadDnnPartitioning(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadText(path));
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::InvalidArgumentError(absl::StrCat(path, ": no JSON object"));
  CostGraph graph;
  try {
    graph.stages = json.at("maxFPGAs");
    graph.bytes_of_stage = json.at("maxSizePerFPGA");
    std::map<int64_t, int> node_of;
    for (const auto& node : json.at("nodes")) {
      const int64_t id = node.at("id");
      node_of[id] = static_cast<int>(graph.nodes.size());
      // Some files say true and false, others 1 and 0.
      const auto& backward = node.at("isBackwardNode");
      graph.nodes.push_back({absl::StrCat(id), node.at("fpgaLatency"), node.value("size", 0.0), 0,
                             backward.is_boolean() ? backward.get<bool>() : backward.get<int>() != 0,
                             node.value("colorClass", -1)});
    }
    for (const auto& edge : json.at("edges")) {
      graph.edges.push_back({node_of.at(edge.at("sourceId")), node_of.at(edge.at("destId"))});
      graph.nodes[graph.edges.back().from].send = edge.at("cost");
    }
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", error.what()));
  }
  return graph;
}

absl::StatusOr<CostGraph> ReadPipedream(const std::string& path, double bandwidth) {
  ASSIGN_OR_RETURN(const std::string text, ReadText(path));
  CostGraph graph;
  std::map<std::string, int> node_of;
  std::vector<std::pair<std::string, std::string>> edges;
  const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipWhitespace());
  for (const std::string& line : lines) {
    const std::vector<std::string> fields = absl::StrSplit(absl::StripAsciiWhitespace(line), " -- ");
    if (line[0] == '\t') {
      if (fields.size() != 2) return absl::InvalidArgumentError(absl::StrCat(path, ": no edge: ", line));
      edges.emplace_back(fields[0], fields[1]);
      continue;
    }
    CostNode node;
    node.id = fields[0];
    ASSIGN_OR_RETURN(const double forward, Field(line, "forward_compute_time"));
    ASSIGN_OR_RETURN(const double backward, Field(line, "backward_compute_time"));
    ASSIGN_OR_RETURN(const double activation, Field(line, "activation_size"));
    ASSIGN_OR_RETURN(node.bytes, Field(line, "parameter_size"));
    node.time = forward + backward;
    node.send = 2 * 1000 * activation / bandwidth;
    node_of[node.id] = static_cast<int>(graph.nodes.size());
    graph.nodes.push_back(node);
  }
  for (const auto& [from, to] : edges) {
    if (!node_of.count(from) || !node_of.count(to))
      return absl::InvalidArgumentError(absl::StrCat(path, ": no such node in edge ", from, " -- ", to));
    graph.edges.push_back({node_of[from], node_of[to]});
  }
  return graph;
}

GraphProblem MakeProblem(const CostGraph& graph, int stages) {
  const int n = static_cast<int>(graph.nodes.size());
  // Nodes that share a number are one, whoever leads to whom.
  std::map<int, int> first_of;  // by `together`
  std::vector<int> class_of(n);
  std::vector<char> has_forward(n, 0);
  for (int i = 0; i < n; ++i) {
    const int together = graph.nodes[i].together;
    class_of[i] = together < 0 ? i : first_of.emplace(together, i).first->second;
    if (!graph.nodes[i].backward) has_forward[class_of[i]] = 1;
  }
  std::vector<std::vector<int>> after(n);
  for (int i = 0; i < n; ++i) {
    if (class_of[i] == i) continue;
    after[i].push_back(class_of[i]);
    after[class_of[i]].push_back(i);
  }
  for (const CostEdge& edge : graph.edges) {
    const CostNode &from = graph.nodes[edge.from], &to = graph.nodes[edge.to];
    if (!from.backward && !to.backward) after[edge.from].push_back(edge.to);
    const bool alone = !has_forward[class_of[edge.from]] || !has_forward[class_of[edge.to]];
    if (from.backward && to.backward && alone) after[edge.to].push_back(edge.from);
  }

  std::vector<int> item_of = Components(after);
  while (JoinIdle(graph, item_of, after)) item_of = Components(after);
  return FromItems(graph, stages, std::move(item_of), after);
}

double SlowestStage(const CostGraph& graph, const std::vector<int>& stage_of) {
  std::map<int, double> loads;
  for (size_t i = 0; i < graph.nodes.size(); ++i) loads[stage_of[i]] += graph.nodes[i].time;
  std::set<std::pair<int, int>> paid;  // node whose output it is, stage
  for (const CostEdge& edge : graph.edges) {
    if (stage_of[edge.from] == stage_of[edge.to]) continue;
    for (int end : {edge.from, edge.to}) {
      if (paid.insert({edge.from, stage_of[end]}).second) loads[stage_of[end]] += graph.nodes[edge.from].send;
    }
  }
  double slowest = 0;
  for (const auto& [stage, load] : loads) slowest = std::max(slowest, load);
  return slowest;
}

}  // namespace pipec::bench
