// Tests the rows of the options of a drain: the default that a row shows is the value in the struct, and every field of
// the struct has a row or stands in a list of the fields that users cannot set.
#include "drain/option_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace haulout::drain {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

using Row = OptionOf<Options>;

// The fields of each struct. A new field does not compile here until it is added. Then EveryFieldHasARow asks for its
// row.
auto fields_of(const Policy& policy) {
  const auto& [daemon_set, orphaned_daemon_set, finished, empty_dir, unmanaged, do_not_disrupt, pinned, gangs,
               skip_terminating_after, pod_selector, leave, evict_daemon_sets, rules, cluster_api_labels,
               waits_for_work] = policy;
  return std::tie(daemon_set, orphaned_daemon_set, finished, empty_dir, unmanaged, do_not_disrupt, pinned, gangs,
                  skip_terminating_after, pod_selector, leave, evict_daemon_sets, rules, cluster_api_labels);
}

auto fields_of(const Guards& guards) {
  const auto& [single_replica, max_unavailable, canary, surge, surge_limit] = guards;
  return std::tie(single_replica, max_unavailable, canary, surge, surge_limit);
}

auto fields_of(const Options& options) {
  const auto& [policy, dry_run, grace_seconds, timeout, order, max_concurrent, pinned_controllers, settle,
               eviction_requests, eviction_request_limit, delete_instead_of_evict, restore_cordon_on_failure, guards,
               volumes, volume_turns, volume_limit, end_at_volume_limit, reattach_limit, fail_fast, unreachable_limit,
               fit, drained_together, review_access, cordoned_by, run_id, own_pod_uid, page_size] = options;
  return std::tuple_cat(fields_of(policy), fields_of(guards),
                        std::tie(dry_run, grace_seconds, timeout, order, max_concurrent, settle, eviction_requests,
                                 eviction_request_limit, delete_instead_of_evict, restore_cordon_on_failure, volumes,
                                 volume_turns, volume_limit, end_at_volume_limit, reattach_limit, fit, page_size),
                        // Facts about one run, and times that no user needs to change. They have no row.
                        std::tie(policy.waits_for_work, pinned_controllers, fail_fast, unreachable_limit,
                                 drained_together, review_access, cordoned_by, run_id, own_pod_uid));
}

constexpr std::size_t fields_without_a_row = 9;

template <std::size_t... I>
std::vector<bool> changed(const Options& from, const Options& to, std::index_sequence<I...>) {
  const auto left = fields_of(from);
  const auto right = fields_of(to);
  return {!(std::get<I>(left) == std::get<I>(right))...};
}

std::vector<bool> changed(const Options& from, const Options& to) {
  using Fields = decltype(fields_of(from));
  return changed(from, to, std::make_index_sequence<std::tuple_size_v<Fields>>());
}

// Values of which at least one differs from any default.
std::vector<std::string> some_values(const Row& row) {
  switch (row.values.type) {
    case ValueType::choice:
    case ValueType::choices: return row.values.words;
    case ValueType::boolean: return {"true", "false"};
    case ValueType::number:
    case ValueType::number_or_percentage: return {"7"};
    case ValueType::duration: return {"77s"};
    case ValueType::text:
    case ValueType::list:
      if (row.name == "drain-order") return {"app=db=10"};
      if (row.name == "pod-rule") return {"app=db=last"};
      return {"app=db"};
    case ValueType::command: return {"/bin/x"};
  }
  return {};
}

TEST(DrainOptionTable, TheShownDefaultIsTheValueInTheStruct) {
  for (const OptionUser user : {OptionUser::command, OptionUser::agent})
    for (const Row& row : option_table(user)) {
      const std::string shown = row.values.show(defaults_of(user));
      if (shown.empty()) continue;
      Options options = defaults_of(user);
      EXPECT_EQ(row.values.set(options, shown), "") << row.name;
      EXPECT_EQ(options, defaults_of(user)) << row.name << "=" << shown << " changes the default";
    }
}

TEST(DrainOptionTable, WhatWasSetIsShown) {
  for (const Row& row : option_table(OptionUser::agent))
    for (const std::string& value : some_values(row)) {
      if (row.values.type == ValueType::list) continue;
      Options options;
      ASSERT_EQ(row.values.set(options, value), "") << row.name << "=" << value;
      const std::string shown = row.values.show(options);
      Options again;
      EXPECT_EQ(row.values.set(again, shown), "") << row.name << "=" << shown;
      EXPECT_EQ(options, again) << row.name << ": " << value << " was set and " << shown << " is shown";
    }
}

TEST(DrainOptionTable, EveryFieldHasARow) {
  std::vector<bool> settable(changed(Options(), Options()).size());
  for (const OptionUser user : {OptionUser::command, OptionUser::agent})
    for (const Row& row : option_table(user))
      for (const std::string& value : some_values(row)) {
        Options options = defaults_of(user);
        ASSERT_EQ(row.values.set(options, value), "") << row.name << "=" << value;
        const std::vector<bool> now = changed(defaults_of(user), options);
        for (std::size_t i = 0; i < now.size(); ++i) settable[i] = settable[i] || now[i];
      }
  const std::size_t with_a_row = settable.size() - fields_without_a_row;
  for (std::size_t i = 0; i < settable.size(); ++i)
    EXPECT_EQ(settable[i], i < with_a_row) << "field " << i << " of fields_of()";
}

TEST(DrainOptionTable, EveryRowIsWhole) {
  for (const OptionUser user : {OptionUser::command, OptionUser::agent}) {
    std::set<std::string> seen;
    for (const Row& row : option_table(user)) {
      EXPECT_TRUE(seen.insert(row.name).second) << row.name << " has two rows";
      EXPECT_TRUE(row.meaning.ends_with('.')) << row.name;
      EXPECT_THAT(row.meaning, Not(HasSubstr("\n"))) << row.name;
      EXPECT_NE(row.values.form, "") << row.name;
    }
  }
}

TEST(DrainOptionTable, TheCommandAndTheAgentShareTheseRows) {
  std::map<std::string, std::string> forms;
  for (const Row& row : option_table(OptionUser::command)) forms.emplace(row.name, row.values.form);
  std::vector<std::string> shared;
  for (const Row& row : option_table(OptionUser::agent)) {
    const auto found = forms.find(row.name);
    if (found == forms.end()) continue;
    EXPECT_EQ(found->second, row.values.form) << row.name;
    shared.push_back(row.name);
  }
  EXPECT_THAT(shared,
              ElementsAre("max-concurrent", "settle", "check-fit", "pinned", "evict-daemonset-pods", "pod-rule",
                          "cluster-api-labels", "gangs", "drain-order", "wait-volumes", "volume-limit", "stuck-volume",
                          "serialize-volumes", "reattach-limit", "max-unavailable-per-controller", "single-replica",
                          "canary", "surge", "surge-limit", "eviction-requests", "eviction-request-limit"));
}

TEST(DrainOptionTable, AnAgentWorksWithoutThePermissionThatACommandInsistsOn) {
  const auto volumes = [](OptionUser user) {
    Options options;
    for (const Row& row : option_table(user))
      if (row.name == "serialize-volumes") EXPECT_EQ(row.values.set(options, "true"), "");
    return options.volume_turns;
  };
  EXPECT_EQ(volumes(OptionUser::command), VolumeWait::required);
  EXPECT_EQ(volumes(OptionUser::agent), VolumeWait::if_permitted);
}

}  // namespace
}  // namespace haulout::drain
