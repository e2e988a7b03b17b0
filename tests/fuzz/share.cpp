#include "drain/guards.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace haulout::fuzz {

static void one(std::string_view input) {
  const auto share = drain::parse_share(input);
  if (!share) return must(!share.error().message().empty(), "an error says what it is");
  const auto again = drain::parse_share(drain::to_string(*share));
  must(again && *again == *share, "what is written is read again");
  must(drain::share_of(*share, std::nullopt) >= 1, "one at least, of how many nobody knows");
  must(drain::share_of(*share, 0) >= 1, "one at least");
  must(!share->percent || drain::share_of(*share, 7) <= 7, "no more than there are");
}

static const Target target("share", one);

}  // namespace haulout::fuzz
