#include "http/base64.hpp"

#include "tests/fuzz/fuzz.hpp"

namespace haulout::fuzz {

static void one(std::string_view input) {
  const auto encoded = http::base64_encode(input);
  must(http::base64_decode(encoded) == input, "what is encoded is decoded again");
  const auto decoded = http::base64_decode(input);
  if (decoded) must(http::base64_decode(http::base64_encode(*decoded)) == decoded, "so is what was decoded");
}

static const Target target("base64", one);

}  // namespace haulout::fuzz
