#include "compiler/cost/fit_link.h"

#include <algorithm>
#include <cmath>

#include "compiler/cost/node_cost.h"
#include "gtest/gtest.h"

namespace pipec {
namespace {

std::vector<MeasuredMessage> Messages(const std::vector<double>& sizes, double (*seconds)(double bytes)) {
  std::vector<MeasuredMessage> messages;
  for (const double bytes : sizes) messages.push_back({bytes, seconds(bytes), 3});
  return messages;
}

TEST(FitLink, IsNeverFasterThanLight) {
  const Link modelled{1, 100};
  EXPECT_EQ(FitLink({}, modelled).origin, Origin::kModelled);
  // One size: the bandwidth is the modelled one, or less if that leaves nothing for the latency.
  const Link one = FitLink({{200, 5, 1}}, modelled);
  EXPECT_EQ(one.origin, Origin::kFitted);
  EXPECT_DOUBLE_EQ(one.latency_seconds, 3);
  EXPECT_DOUBLE_EQ(one.bytes_per_second, 100);
  const Link slow = FitLink({{200, 1, 1}}, modelled);
  EXPECT_DOUBLE_EQ(slow.latency_seconds, 0);
  EXPECT_DOUBLE_EQ(slow.bytes_per_second, 200);
  // More bytes in less time: bytes cost nothing, and 3 s and 1 s are missed by equal shares of themselves.
  const Link noise = FitLink({{100, 3, 1}, {200, 1, 1}}, modelled);
  EXPECT_DOUBLE_EQ(MessageSeconds(1000, noise), MessageSeconds(1, noise));
  EXPECT_DOUBLE_EQ(MessageSeconds(1000, noise), (1.0 / 3 + 1) / (1.0 / 9 + 1));
  // A latency below 0.
  const Link steep = FitLink({{100, 1, 1}, {200, 3, 1}}, modelled);
  EXPECT_DOUBLE_EQ(steep.latency_seconds, 0);
  EXPECT_GT(MessageSeconds(100, steep), 1);
  EXPECT_LT(MessageSeconds(200, steep), 3);
  // Runs of one size weigh.
  const Link weighed = FitLink({{100, 1, 1}, {100, 4, 2}, {300, 5, 3}}, modelled);
  EXPECT_NEAR(MessageSeconds(100, weighed), 3, 1e-9);
  EXPECT_NEAR(MessageSeconds(300, weighed), 5, 1e-9);
  // Messages that take no time.
  EXPECT_EQ(MessageSeconds(400, FitLink({{100, 0, 1}, {200, 0, 1}}, modelled)), 0);
}

TEST(FitLink, ALineIsFound) {
  const auto messages = Messages({1e3, 1e4, 1e5, 1e6, 1e7}, [](double bytes) { return 2e-5 + bytes / 3e9; });
  const Link link = FitLink(messages, {});
  EXPECT_NEAR(link.latency_seconds, 2e-5, 1e-11);
  EXPECT_NEAR(link.bytes_per_second / 3e9, 1, 1e-6);
  EXPECT_EQ(link.knee_bytes, std::numeric_limits<double>::infinity());
}

TEST(FitLink, ALineThatFitsWellStaysOne) {
  // Up to 8 % beside the line.
  const auto messages = Messages({1e3, 1e4, 1e5, 1e6, 1e7, 1e8}, [](double bytes) {
    return (2e-5 + bytes / 3e9) * (1 + 0.08 * std::sin(std::log(bytes)));
  });
  EXPECT_EQ(FitLink(messages, {}).knee_bytes, std::numeric_limits<double>::infinity());
}

TEST(FitLink, TwoPiecesWhereOneMisfits) {
  // Large messages are slower by the byte (they leave the cache), or faster (another protocol).
  for (auto* seconds :
       {+[](double bytes) { return 2e-5 + std::min(bytes, 1e6) / 1e10 + std::max(bytes - 1e6, 0.0) / 1e9; },
        +[](double bytes) {
          return 2e-5 + std::min(bytes, 1e6) / 1e8 + std::max(bytes - 1e6, 0.0) / 1e10;
        }}) {
    const auto messages = Messages({1e3, 1e4, 1e5, 1e6, 1e7, 1e8}, seconds);
    const Link link = FitLink(messages, {});
    EXPECT_EQ(link.knee_bytes, 1e6);
    for (const double bytes : {500.0, 3e4, 5e5, 2e6, 1e9})
      EXPECT_NEAR(MessageSeconds(bytes, link) / seconds(bytes), 1, 1e-6);
  }
}

TEST(FitLink, APieceHasTwoSizes) {
  // One size alone is no second piece, however far it lies beside the line.
  const auto messages =
      Messages({1e3, 1e4, 1e5}, [](double bytes) { return bytes < 1e5 ? 1e-5 + bytes / 1e10 : 1e-2; });
  EXPECT_EQ(FitLink(messages, {}).knee_bytes, std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace pipec
