// JSON objects in sorted vectors (SortedMap) behave as those of nlohmann::json.
#include "placement/sorted_map.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "placement/objects.hpp"
#include "retry/rng.hpp"

namespace haulout::placement {
namespace {

// Changes both objects in the same random way. Few keys, so that most changes are about a key that exists.
void change(Json& flat, nlohmann::json& tree, SeededRng& rng) {
  constexpr std::uint64_t keys = 24, kinds = 5;  // more keys than the map searches one by one
  const std::string key = fmt::format("key-{}", rng.between(std::uint64_t{0}, keys));
  const std::uint64_t value = rng.between(std::uint64_t{0}, std::uint64_t{3});
  switch (rng.between(std::uint64_t{0}, kinds)) {
    case 0: flat[key] = value, tree[key] = value; break;
    case 1: flat.erase(key), tree.erase(key); break;
    case 2: flat[key]["inner"][key] = value, tree[key]["inner"][key] = value; break;
    case 3:
      flat.merge_patch({{key, nullptr}, {"other", {{key, value}}}});
      tree.merge_patch({{key, nullptr}, {"other", {{key, value}}}});
      break;
    case 4: {
      if (flat.empty()) break;
      flat.erase(flat.begin()), tree.erase(tree.begin());
      break;
    }
    default: flat = Json::parse(tree.dump()); break;
  }
}

TEST(SortedMap, IsTheMapOfNlohmannJson) {
  constexpr std::uint64_t seeds = 50;
  constexpr int changes = 200;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    SeededRng rng(seed);
    Json flat = Json::object();
    nlohmann::json tree = nlohmann::json::object();
    for (int i = 0; i < changes; ++i) {
      // A member that is not an object cannot get members.
      for (auto member = tree.begin(); member != tree.end(); ++member)
        if (!member->is_object()) *member = nullptr, flat[member.key()] = nullptr;
      change(flat, tree, rng);
      ASSERT_EQ(flat.dump(), tree.dump()) << "seed " << seed << ", change " << i;
      ASSERT_EQ(flat.size(), tree.size());
      for (const auto& [key, value] : tree.items()) {
        ASSERT_TRUE(flat.contains(key)) << "seed " << seed << ", change " << i;
        ASSERT_EQ(flat.at(key).dump(), value.dump());
      }
      ASSERT_FALSE(flat.contains("key"));
    }
  }
}

TEST(SortedMap, TextMayHaveItsMembersInAnyOrderAndTwice) {
  EXPECT_EQ(Json::parse(R"({"b":1,"a":{"y":1,"x":2},"b":3})").dump(), R"({"a":{"x":2,"y":1},"b":3})");
}

TEST(SortedMap, EqualObjectsAreEqual) {
  const Json one = {{"a", 1}, {"b", {{"c", 2}}}};
  Json other = {{"b", {{"c", 2}}}, {"a", 1}};
  EXPECT_EQ(one, other);
  other["b"]["c"] = 3;
  EXPECT_NE(one, other);
}

TEST(SortedMap, AMissingKeyIsAnError) {
  const Json object = {{"a", 1}};
  EXPECT_THROW(std::ignore = object.at("b"), Json::out_of_range);
}

}  // namespace
}  // namespace haulout::placement
