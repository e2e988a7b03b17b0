#include "sim/json_text.hpp"

#include <gtest/gtest.h>

#include "retry/rng.hpp"

namespace haulout::sim {
namespace {

TEST(JsonText, IsThatOfDumpForEachKindOfValue) {
  for (const char* text : {"null", "true", "false", "0", "-1", "9223372036854775807", "-9223372036854775808",
                           "18446744073709551615", "1.5", "1e300", "{}", "[]", R"("")", R"("plain text")",
                           R"({"a":{"b":[1,{"c":null}]},"d":[[],{}]})", R"({"quotes \" in a key":"back\\slash"})",
                           R"("line\nend, tab\t, bell\u0007, delete\u007f")", R"("Grüße, 日本, 🚢")"}) {
    const Json value = Json::parse(text);
    EXPECT_EQ(json_text(value), value.dump()) << text;
  }
}

TEST(JsonText, ATextThatIsNotUtf8IsAnErrorAsForDump) {
  EXPECT_THROW(Json("\xff").dump(), Json::type_error);
  EXPECT_THROW(json_text(Json("\xff")), Json::type_error);
}

Json random_value(Rng& rng, int depth) {
  const auto kinds = static_cast<std::uint64_t>(depth > 0 ? 7 : 5);
  switch (rng.next() % kinds) {
    case 0: return nullptr;
    case 1: return rng.next() % 2 == 0;
    case 2: return static_cast<std::int64_t>(rng.next());
    case 3: return rng.next();
    case 4: {
      std::string text;
      for (auto length = rng.next() % 20; length > 0; --length) text += static_cast<char>(rng.next() % 128);
      return text;
    }
    case 5: {
      Json list = Json::array();
      for (auto length = rng.next() % 4; length > 0; --length) list.push_back(random_value(rng, depth - 1));
      return list;
    }
    default: {
      Json object = Json::object();
      for (auto length = rng.next() % 4; length > 0; --length)
        object[std::string(1, static_cast<char>(rng.next() % 128))] = random_value(rng, depth - 1);
      return object;
    }
  }
}

TEST(JsonText, IsThatOfDumpForTextsOfAllLengths) {
  SeededRng rng(2);
  constexpr std::string_view characters = "ab\"\\ :{}";
  for (std::size_t length = 0; length < 3000; length += 1 + length / 50) {
    std::string text;
    for (std::size_t i = 0; i < length; ++i) text += characters[rng.next() % (length % 3 == 0 ? 2 : characters.size())];
    const Json value = {text, {{text, 1}}, text};
    ASSERT_EQ(json_text(value), value.dump()) << length;
  }
}

TEST(JsonText, AnItemHasNoKindAndNoVersion) {
  EXPECT_EQ(item_text(Json::parse(R"({"kind":"Pod","apiVersion":"v1","metadata":{"kind":"x"},"spec":{}})")),
            R"({"metadata":{"kind":"x"},"spec":{}})");
  EXPECT_EQ(item_text(Json::parse(R"({"kind":"Pod"})")), "{}");
}

TEST(JsonText, IsThatOfDumpForRandomValues) {
  SeededRng rng(1);
  constexpr int values = 2000;
  for (int i = 0; i < values; ++i) {
    const Json value = random_value(rng, 4);
    ASSERT_EQ(json_text(value), value.dump());
  }
}

}  // namespace
}  // namespace haulout::sim
