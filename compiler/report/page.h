// The page as it lies in page/, put together when pipec is built.
#pragma once

namespace pipec {

// HTML with the style sheet and the script in place; the title and the data (JSON) go where these marks
// stand, once each.
extern const char kReportPage[];
inline constexpr char kTitleMark[] = "@TITLE@";
inline constexpr char kDataMark[] = "@DATA@";

}  // namespace pipec
