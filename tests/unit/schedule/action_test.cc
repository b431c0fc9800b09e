#include "compiler/schedule/action.h"

#include "gtest/gtest.h"

namespace pipec {
namespace {

TEST(Action, TextAndBack) {
  const std::pair<Action, const char*> cases[] = {
      {{ActionKind::kF, 2, 0}, "2F0"},
      {{ActionKind::kB, 10, 31}, "10B31"},
      {{ActionKind::kI, 0, 7}, "0I7"},
      {{ActionKind::kW, 1, 2}, "1W2"},
      {{ActionKind::kSendF, 0, 3, 1}, "0SEND_F3"},
      {{ActionKind::kSendF, 0, 3, 2}, "0SEND_F3>2"},
      {{ActionKind::kRecvF, 2, 3, 1}, "2RECV_F3"},
      {{ActionKind::kRecvF, 2, 3, 0}, "2RECV_F3<0"},
      {{ActionKind::kSendB, 3, 0, 2}, "3SEND_B0"},
      {{ActionKind::kRecvB, 1, 4, 3}, "1RECV_B4<3"},
      {{ActionKind::kNorm}, "NORM"},
      {{ActionKind::kReduceTied}, "REDUCE_TIED"},
      {{ActionKind::kReduceGrad, 3}, "3REDUCE_GRAD"},
      {{ActionKind::kUpdate, 1}, "1UPDATE"},
  };
  for (const auto& [action, text] : cases) {
    EXPECT_EQ(ToString(action), text);
    auto parsed = ParseAction(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, action) << text;
  }
}

TEST(Action, RefusesWhatIsNone) {
  for (const char* text : {"",
                           "F",
                           "2F",
                           "F0",
                           "2X0",
                           "2F0 ",
                           "-1F0",
                           "2f0",
                           "1NORM",
                           "REDUCE_GRAD",
                           "1REDUCE_GRAD2",
                           "UPDATE",
                           "1UPDATE2",
                           "0SEND_F3>",
                           "0SEND_F3<2",
                           "0RECV_F3",
                           "0SEND_B1",
                           "2F0>1",
                           "99999999999F0",
                           "2F0,"}) {
    EXPECT_FALSE(ParseAction(text).ok()) << text;
  }
}

}  // namespace
}  // namespace pipec
