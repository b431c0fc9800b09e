#include "compiler/partition/ideals.h"

#include <algorithm>
#include <unordered_set>

#include "compiler/partition/ancestors.h"

namespace pipec {
namespace {

// Places where a part begins, and the number of blocks.
std::vector<int> PartBegins(const Blocks& blocks) {
  const int n = blocks.size();
  std::vector<std::vector<int>> mirrored(n);
  for (int i = 0; i < n; ++i) {
    for (int parent : blocks.parents[i]) mirrored[n - 1 - parent].push_back(n - 1 - i);
  }
  const std::vector<double> none(n, 0);
  const std::vector<int> before = SumAncestors(blocks.parents, none).blocks,
                         after = SumAncestors(mirrored, none).blocks;
  std::vector<int> begins = {0};
  const auto add = [&begins](int place) {
    if (place > begins.back()) begins.push_back(place);
  };
  for (int i = 0; i < n; ++i) {
    if (before[i] + after[n - 1 - i] != n + 1) continue;  // not comparable to all
    add(i);
    add(i + 1);
  }
  add(n);
  return begins;
}

class Finder {
 public:
  Finder(const Blocks& blocks, int most)
      : blocks_(blocks), most_(most), tensors_of_(blocks.size()), bytes_of_group_(blocks.shared_groups) {
    for (int t = 0; t < static_cast<int>(blocks.tensors.size()); ++t) {
      const BlockTensor& tensor = blocks.tensors[t];
      tensors_of_[tensor.producer].push_back(t);
      for (int consumer : tensor.consumers) tensors_of_[consumer].push_back(t);
    }
    users_.resize(blocks.shared_groups, 0);
    for (const auto& uses : blocks.shared) {
      for (const SharedUse& use : uses) {
        ++users_[use.group];
        bytes_of_group_[use.group] = use.bytes;
      }
    }
  }

  std::optional<Ideals> Find() {
    found_.part_begin = PartBegins(blocks_);
    const int parts = static_cast<int>(found_.part_begin.size()) - 1;
    Ideal first;  // of a part: holds nothing of it
    for (int part = 0; part < parts; ++part) {
      std::optional<Ideal> full = FindPart(part, first);
      if (!full) return std::nullopt;
      first = *full;
    }
    found_.ideals.push_back(first);
    found_.ideals.back().part = parts - 1;
    return std::move(found_);
  }

 private:
  // Appends the ideals of the part, but for the one that holds all of it, which is returned.
  std::optional<Ideal> FindPart(int part, Ideal first) {
    const int begin = found_.part_begin[part], blocks = found_.part_begin[part + 1] - begin;
    const int words = found_.WordsOf(part);
    const size_t first_of_part = found_.ideals.size();
    const auto hash = [&](size_t set) {
      uint64_t value = 0;
      for (int w = 0; w < words; ++w) {
        value = (value ^ found_.words[set + w]) * 0x9E3779B97F4A7C15u;
        value ^= value >> 29;
      }
      return static_cast<size_t>(value);
    };
    const auto same = [&](size_t a, size_t b) {
      return std::equal(&found_.words[a], &found_.words[a] + words, &found_.words[b]);
    };
    std::unordered_set<size_t, decltype(hash), decltype(same)> known(64, hash, same);
    first.part = part;
    first.set = found_.words.size();
    found_.words.resize(found_.words.size() + words, 0);
    found_.ideals.push_back(first);
    std::optional<Ideal> full;
    for (size_t next = first_of_part; next < found_.ideals.size(); ++next) {
      for (int k = 0; k < blocks; ++k) {
        const Ideal ideal = found_.ideals[next];
        if (found_.words[ideal.set + k / 64] >> (k % 64) & 1) continue;
        const std::vector<int>& parents = blocks_.parents[begin + k];
        if (!std::all_of(parents.begin(), parents.end(), [&](int p) { return found_.Has(ideal, p); }))
          continue;
        const size_t set = found_.words.size();
        for (int w = 0; w < words; ++w) found_.words.push_back(found_.words[ideal.set + w]);
        found_.words[set + k / 64] |= uint64_t{1} << (k % 64);
        if (!known.insert(set).second) {
          found_.words.resize(set);
          continue;
        }
        if (static_cast<int>(found_.ideals.size()) >= most_) return std::nullopt;
        Ideal grown = With(ideal, begin + k);
        grown.set = set;
        if (grown.held == begin + blocks) {
          full = grown;
        } else {
          found_.ideals.push_back(grown);
        }
      }
    }
    SortPart(first_of_part, first);
    full->seconds = first.seconds;
    for (int k = 0; k < blocks; ++k) full->seconds += blocks_.blocks[begin + k].seconds;
    return full;
  }

  // In this order of summing a set is never faster than one that lies in it.
  void SortPart(size_t first_of_part, const Ideal& first) {
    const int begin = found_.part_begin[first.part], end = found_.part_begin[first.part + 1];
    for (size_t k = first_of_part; k < found_.ideals.size(); ++k) {
      Ideal& ideal = found_.ideals[k];
      ideal.seconds = first.seconds;
      for (int block = begin; block < end; ++block) {
        if (found_.Has(ideal, block)) ideal.seconds += blocks_.blocks[block].seconds;
      }
    }
    std::stable_sort(found_.ideals.begin() + first_of_part, found_.ideals.end(),
                     [](const Ideal& a, const Ideal& b) {
                       return a.seconds != b.seconds ? a.seconds < b.seconds : a.held < b.held;
                     });
  }

  // The ideal with one block more.
  Ideal With(const Ideal& ideal, int block) {
    Ideal grown = ideal;
    ++grown.held;
    grown.bytes += blocks_.blocks[block].bytes;
    grown.remake += blocks_.blocks[block].remake;
    grown.tensors = found_.crossing.size();
    Count(ideal.tensors, ideal.tensors_end, tensors_of_[block], [&](int t, int held) {
      if (held == 1) grown.crossing_seconds += blocks_.tensors[t].seconds;
      if (held < blocks_.tensors[t].blocks()) return true;
      grown.crossing_seconds -= blocks_.tensors[t].seconds;
      return false;
    });
    grown.tensors_end = grown.shared = found_.crossing.size();
    groups_.clear();
    for (const SharedUse& use : blocks_.shared[block]) groups_.push_back(use.group);
    std::sort(groups_.begin(), groups_.end());
    Count(ideal.shared, ideal.shared_end, groups_, [&](int group, int held) {
      if (held == 1) {
        grown.bytes += bytes_of_group_[group];
        grown.crossing_bytes += bytes_of_group_[group];
      }
      if (held < users_[group]) return true;
      grown.crossing_bytes -= bytes_of_group_[group];
      return false;
    });
    grown.shared_end = found_.crossing.size();
    return grown;
  }

  // Appends to the crossing those of [from, to) and `added`, each with the count that it then has, where
  // `keep`(id, count).
  template <typename Keep>
  void Count(size_t from, size_t to, const std::vector<int>& added, Keep keep) {
    size_t k = 0;
    const auto add = [&](int id, int held) {
      if (keep(id, held)) found_.crossing.push_back({id, held});
    };
    for (; from < to; ++from) {
      const Crossing old = found_.crossing[from];
      for (; k < added.size() && added[k] < old.id; ++k) add(added[k], 1);
      if (k < added.size() && added[k] == old.id) {
        add(old.id, old.held + 1);
        ++k;
      } else {
        found_.crossing.push_back(old);
      }
    }
    for (; k < added.size(); ++k) add(added[k], 1);
  }

  const Blocks& blocks_;
  const int most_;
  std::vector<std::vector<int>> tensors_of_;  // by block, ascending
  std::vector<int> users_;                    // by group: blocks
  std::vector<HeldBytes> bytes_of_group_;
  std::vector<int> groups_;
  Ideals found_;
};

}  // namespace

std::optional<Ideals> FindIdeals(const Blocks& blocks, int most) { return Finder(blocks, most).Find(); }

}  // namespace pipec
