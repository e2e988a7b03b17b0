// P12: objects that other clients write into a collection cannot fill the memory. The error shows where they come from,
// for example who holds the Leases.
#include "k8s/list_budget.hpp"

#include <gmock/gmock.h>

#include "k8s/client.hpp"
#include "k8s/codec.hpp"
#include "tests/k8s/fixtures.hpp"
#include "tests/support/scripted_transport.hpp"
#include "tests/support/virtual_time.hpp"

namespace haulout::k8s {
namespace {

using haulout::testing::json_response;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using namespace std::chrono_literals;

constexpr std::size_t kilobyte = 1024;
constexpr std::size_t megabyte = 1024 * kilobyte;

TEST(ListBudget, IsFarBeyondWhatAClusterOfFiveThousandNodesHas) {
  struct Row {
    ListBudget budget;
    ListSize size;
    bool fits;
  };
  const std::vector<Row> rows = {
      {Kind<Lease>::budget, {1'000, 1'000 * kilobyte, 300'000}, true},
      {Kind<Lease>::budget, {10'001, 10 * megabyte, megabyte}, false},
      {Kind<Lease>::budget, {28, 33 * megabyte, 1'000}, false},
      {Kind<Lease>::budget, {1'000, 10 * megabyte, 10 * megabyte}, false},
      {Kind<Node>::budget, {5'000, 600 * megabyte, 5'000 * 8 * kilobyte}, true},
      {Kind<Node>::budget, {3, 17 * megabyte, 17 * megabyte}, false},
      {Kind<Pod>::budget, {150'000, 3'000 * megabyte, 150'000 * kilobyte}, true},
      {Kind<Pod>::budget, {300, 300 * megabyte, 20 * megabyte}, false},
      {Kind<PodDisruptionBudget>::budget, {5'000, 20 * megabyte, 2 * megabyte}, true},
      {Kind<PodDisruptionBudget>::budget, {2'000, 20 * megabyte, 19 * megabyte}, false},
      {Kind<VolumeAttachment>::budget, {50'000, 100 * megabyte, 5 * megabyte}, true},
      {Kind<ConfigMap>::budget, {1, megabyte, megabyte}, true},
  };
  for (const Row& row : rows)
    EXPECT_EQ(!excess(row.budget, row.size, 0).has_value(), row.fits)
        << row.budget.items << " " << row.size.items << " " << row.size.kept;
}

// P12: what an agent keeps must fit into the memory limit of its container, and the Nodes of a cluster of 5,000 nodes
// must fit into what the agent keeps.
TEST(ListBudget, OfAnAgentIsWhatAClusterOfFiveThousandNodesTakes) {
  Node node;
  node.name = "worker-0123.example.com";
  for (int i = 0; i < 30; ++i) node.labels["node.kubernetes.io/label-" + std::to_string(i)] = "some-value-of-it";
  const std::size_t each = memory_of(node);
  const ListBudget nodes = Kind<Node>::budget;
  EXPECT_FALSE(excess(nodes, {5'000, 0, 5'000 * text_in(node), 5'000 * each}, most_memory_of_agents));
  EXPECT_EQ(excess(nodes, {9'000, 0, 9'000 * text_in(node), 9'000 * each}, most_memory_of_agents), "32 MB of memory");
}

TEST(ListBudget, ManyShortEntriesAreMoreThanTheirText) {
  Pod pod;
  const std::size_t empty = memory_of(pod);
  for (int i = 0; i < 100; ++i) pod.labels[std::to_string(i)];
  EXPECT_GT(memory_of(pod), empty + 100 * 64);
  pod.finalizers.assign(10, std::string(kilobyte, 'f'));
  EXPECT_GT(memory_of(pod), empty + 100 * 64 + 10 * kilobyte);
}

TEST(LongestObject, IsNamed) {
  const std::string small = R"({"metadata":{"namespace":"haulout","name":"a"}})";
  const std::string large = R"({"metadata":{"namespace":"haulout","name":"b","annotations":{"x":")" +
                            std::string(10 * kilobyte, 'x') + R"("}}})";
  EXPECT_EQ(longest_object(R"({"items":[)" + small + "," + large + "," + small + "]}"), "haulout/b (10 kB)");
  EXPECT_EQ(longest_object(R"({"items":[{"metadata":{"name":"n1"}}]})"), "n1 (0 kB)");
  for (const char* odd : {"", "[]", "{}", R"({"items":null})", R"({"items":[]})", "x"})
    EXPECT_EQ(longest_object(odd), "");
}

class ListBudgetTest : public haulout::testing::VirtualTimeTest {
 protected:
  haulout::testing::ScriptedTransport transport{clock};
  Client client{transport, clock, {FieldValidation::strict, 500}};
  const TimePoint soon = start + 60s;

  void too_long() { transport.fail(Error(Errc::protocol, "the body is longer than 4194304 bytes")); }
  static std::string entries(std::size_t count, const std::string& prefix, std::size_t value) {
    std::string out;
    for (std::size_t i = 0; i < count; ++i)
      out += (i > 0 ? ",\"" : "\"") + prefix + std::to_string(i) + "\":\"" + std::string(value, 'v') + "\"";
    return out;
  }
  static std::string lease(int number, const std::string& labels) {
    return R"({"metadata":{"name":"haulout-default-)" + std::to_string(number) + R"(","namespace":"haulout","uid":"u)" +
           std::to_string(number) + R"(","resourceVersion":"1","labels":{)" + labels +
           R"(}},"spec":{"holderIdentity":"n1/uid"}})";
  }
  void leases(const std::string& items, const std::string& more = "") {
    transport.answer(json_response(200, fixtures::list("LeaseList", "5", items, more)));
  }
  std::string target(std::size_t i) { return transport.requests().at(i).request.target; }
};

// A page was too long. The client continues where the last good page ended, with smaller pages, which become larger
// again.
TEST_F(ListBudgetTest, APageThatIsTooLongIsReadInParts) {
  too_long();
  too_long();
  leases(lease(1, ""), "t1");
  leases(lease(2, ""), "t2");
  leases(lease(3, ""));
  const auto list = run(client.list<Lease>({.label_selector = "", .limit = usual_page, .ns = "haulout"}, soon));
  ASSERT_TRUE(list) << list.error().message();
  EXPECT_THAT(list->items, SizeIs(3));
  EXPECT_THAT(target(0), HasSubstr("limit=500"));
  EXPECT_THAT(target(1), HasSubstr("limit=62"));
  EXPECT_THAT(target(2), HasSubstr("limit=7"));
  EXPECT_THAT(target(3), AllOf(HasSubstr("limit=14"), HasSubstr("continue=t1")));
  EXPECT_THAT(target(4), AllOf(HasSubstr("limit=28"), HasSubstr("continue=t2")));
  // The client remembers a good size for the next list, which does not begin with the usual 500 objects or with single
  // ones.
  leases("");
  ASSERT_TRUE(run(client.list<Lease>({.label_selector = "", .limit = usual_page, .ns = "haulout"}, soon)));
  EXPECT_THAT(target(5), HasSubstr("limit=50"));
}

// The user has disabled paging, but the whole list is longer than an answer may be.
TEST_F(ListBudgetTest, AListWithoutPagesThatIsTooLongIsReadInPages) {
  too_long();
  too_long();
  leases(lease(1, ""), "t1");
  leases(lease(2, ""));
  const auto list = run(client.list<Lease>({.label_selector = "", .limit = 0, .ns = "haulout"}, soon));
  ASSERT_TRUE(list) << list.error().message();
  EXPECT_THAT(list->items, SizeIs(2));
  EXPECT_THAT(target(0), Not(HasSubstr("limit=")));
  EXPECT_THAT(target(1), HasSubstr("limit=500"));
  EXPECT_THAT(target(2), HasSubstr("limit=62"));
  EXPECT_THAT(target(3), AllOf(HasSubstr("limit=124"), HasSubstr("continue=t1")));
}

// A page with too many JSON values is treated like a page that is too long, because each value takes more memory than
// its text.
TEST_F(ListBudgetTest, APageOfTooManyValuesIsReadInParts) {
  std::string numbers = R"("x":[0)";
  for (int i = 0; i < 400'000; ++i) numbers += ",0";
  leases(lease(1, "") + R"(,{"metadata":{"name":"n","namespace":"haulout","uid":"u"},)" + numbers + "]}");
  leases(lease(1, ""));
  const auto list = run(client.list<Lease>({.label_selector = "", .limit = usual_page, .ns = "haulout"}, soon));
  ASSERT_TRUE(list) << list.error().message();
  EXPECT_THAT(list->items, SizeIs(1));
  EXPECT_THAT(target(1), HasSubstr("limit=62"));
}

// The server sends a list without an end, in valid pages. An agent stops at its memory limit, and the list fails.
TEST_F(ListBudgetTest, AnEndlessListIsNotReadToItsEndByAnAgent) {
  Client agents{transport, clock, {FieldValidation::strict, 500, megabyte}};
  for (int page = 0; page < 40; ++page) {
    std::string items;
    for (int i = 0; i < 100; ++i) items += (i > 0 ? "," : "") + lease(page * 100 + i, "");
    leases(items, "t" + std::to_string(page));
  }
  const auto list = run(agents.list<Lease>({.label_selector = "", .limit = usual_page, .ns = "haulout"}, soon));
  ASSERT_FALSE(list);
  EXPECT_THAT(list.error().message(),
              HasSubstr("more Leases of namespace haulout than Haulout reads (at most 1 MB of memory)"));
  EXPECT_LT(transport.requests().size(), 40u);
}

TEST_F(ListBudgetTest, OneObjectThatIsTooLongEndsTheList) {
  for (int i = 0; i < 4; ++i) too_long();
  const auto list = run(client.list<Lease>({.label_selector = "", .limit = usual_page, .ns = "haulout"}, soon));
  ASSERT_FALSE(list);
  EXPECT_THAT(list.error().message(), HasSubstr("reading the Leases of namespace haulout one by one"));
  EXPECT_THAT(transport.requests(), SizeIs(4));
}

TEST_F(ListBudgetTest, AFloodOfLongLeasesIsNotReadToItsEnd) {
  const std::string labels = entries(4'500, "x", 200);
  int page = 0;
  for (; page < 40; ++page) leases(lease(page, labels), "t" + std::to_string(page));
  const auto list = run(client.list<Lease>({.label_selector = "", .limit = usual_page, .ns = "haulout"}, soon));
  ASSERT_FALSE(list);
  EXPECT_EQ(list.error().code(), Errc::decode);
  EXPECT_THAT(list.error().message(),
              AllOf(HasSubstr("more Leases of namespace haulout than Haulout reads (at most 32 MB"),
                    HasSubstr("haulout/haulout-default-"), HasSubstr("held by n1/uid")));
  EXPECT_LT(transport.requests().size(), 40u);
}

TEST_F(ListBudgetTest, AFloodOfShortLeasesIsNotReadToItsEnd) {
  for (int page = 0; page < 21; ++page) {
    std::string items;
    for (int i = 0; i < 500; ++i) items += (i > 0 ? "," : "") + lease(page * 500 + i, "");
    leases(items, "t" + std::to_string(page));
  }
  const auto list = run(client.list<Lease>({.label_selector = "", .limit = usual_page, .ns = "haulout"}, soon));
  ASSERT_FALSE(list);
  EXPECT_THAT(list.error().message(), AllOf(HasSubstr("10000 objects"), HasSubstr("10500 of them are held by n1/uid")));
}

TEST_F(ListBudgetTest, OfALeaseOnlyOurLabelsAreKept) {
  leases(lease(1, entries(3'000, "a", 1) + R"(,"haulout.dev/pool":"default","haulout.dev/zone":"z")"));
  const auto list = run(client.list<Lease>({.label_selector = "", .limit = usual_page, .ns = "haulout"}, soon));
  ASSERT_TRUE(list) << list.error().message();
  EXPECT_LE(list->items[0].labels.size(), 18u);
  EXPECT_EQ(list->items[0].labels.at("haulout.dev/pool"), "default");
  EXPECT_EQ(list->items[0].labels.at("haulout.dev/zone"), "z");
}

TEST_F(ListBudgetTest, OfANodeSoManyLabelsAreKeptAndOursAllTheSame) {
  const auto node =
      decode<Node>(R"({"kind":"Node","apiVersion":"v1","metadata":{"name":"n","uid":"u","resourceVersion":"1",)"
                   R"("labels":{)" +
                   entries(100'000, "a", 0) + R"(,"haulout.dev/state":"idle"},"annotations":{)" +
                   entries(40, "b", 10'000) + R"(,"haulout.dev/record":"{}"}}})");
  ASSERT_TRUE(node) << node.error().message();
  EXPECT_THAT(node->labels, SizeIs(1'001));
  EXPECT_EQ(node->labels.at("haulout.dev/state"), "idle");
  EXPECT_LT(text_in(*node), 400 * kilobyte);
  EXPECT_EQ(node->annotations.at("haulout.dev/record"), "{}");
  const auto flood =
      decode<Node>(R"({"kind":"Node","apiVersion":"v1","metadata":{"name":"n","uid":"u","resourceVersion":"1",)"
                   R"("labels":{)" +
                   entries(100'000, "haulout.dev/a", 0) + "}}}");
  ASSERT_TRUE(flood);
  EXPECT_THAT(flood->labels, SizeIs(1'000));
}

// A Node has so many labels that the selected label is not kept. The client must not conclude that the server ignored
// the selector.
TEST_F(ListBudgetTest, ANodeWithTooManyLabelsKeepsNoOtherFromBeingSeen) {
  const auto node = [](const std::string& name, const std::string& labels) {
    return R"({"metadata":{"name":")" + name + R"(","uid":"u)" + name + R"(","resourceVersion":"1","labels":{)" +
           labels + R"("zzz":"blue"}}})";
  };
  const auto listed = [&](const std::string& labels) {
    transport.answer(json_response(200, fixtures::list("NodeList", "5", node("n1", "") + "," + node("n2", labels))));
    return run(client.list_nodes("zzz=blue", soon));
  };
  for (const std::string& labels : {entries(2'000, "a", 0), entries(900, "a", 90)}) {
    const auto list = listed(labels + ",");
    ASSERT_TRUE(list) << list.error().message();
    EXPECT_THAT(list->items, SizeIs(2));
  }
}

TEST_F(ListBudgetTest, OfAPodAndABudgetSoMuchIsKept) {
  const auto pod = decode<Pod>(R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","namespace":"a","uid":"u",)"
                               R"("resourceVersion":"1","labels":{)" +
                               entries(100'000, "a", 0) + "}}}");
  ASSERT_TRUE(pod) << pod.error().message();
  EXPECT_THAT(pod->labels, SizeIs(256));
  const auto selects = [](const std::string& labels) {
    return decode<PodDisruptionBudget>(
        R"({"kind":"PodDisruptionBudget","apiVersion":"policy/v1","metadata":{"name":"p","namespace":"a","uid":"u",)"
        R"("resourceVersion":"1"},"spec":{"selector":{"matchLabels":{)" +
        labels + "}}}}");
  };
  EXPECT_TRUE(selects(entries(10, "a", 10))->selector);
  EXPECT_FALSE(selects(entries(10'000, "a", 10))->selector);
}

}  // namespace
}  // namespace haulout::k8s
