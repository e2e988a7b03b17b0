// EvictionRequests of a drain: what comes next for a pod that has responders, and which requests are created, renewed
// and withdrawn.
#include "drain/eviction_request_book.hpp"

#include <gmock/gmock.h>

#include "drain/reasons.hpp"
#include "tests/drain/builders.hpp"

namespace haulout::drain::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Next = RequestJudgement::Next;
using Kind = EvictionRequestBook::Step::Kind;
using Node = EvictionRequestBook::Node;

const k8s::Pod asked = [] {
  k8s::Pod pod = a_pod("vm-0");
  pod.eviction_responders = {"acme.io/mover"};
  return pod;
}();

k8s::EvictionRequest request_for(const k8s::Pod& pod, std::string_view intent = k8s::intent_eviction) {
  k8s::EvictionRequest request;
  request.ns = pod.ns;
  request.name = k8s::request_name(pod.uid);
  request.uid = "request-" + pod.uid;
  request.resource_version = "7";
  request.pod_name = pod.name;
  request.pod_uid = pod.uid;
  request.requester = k8s::eviction_requester;
  request.intent = intent;
  request.generation = 1;
  return request;
}

k8s::EvictionProcess process_for(const k8s::Pod& pod, std::string active, std::optional<WallTime> start,
                                 std::optional<WallTime> heartbeat = {}) {
  k8s::EvictionProcess process;
  process.ns = pod.ns;
  process.name = "pod-1-" + pod.name;
  process.uid = "process-" + pod.uid;
  process.pod_uid = pod.uid;
  process.active = std::move(active);
  process.start = start;
  process.heartbeat = heartbeat;
  return process;
}

struct Judged {
  std::string name;
  std::function<void(RequestFacts&, k8s::EvictionRequest&, k8s::EvictionProcess&)> arrange;
  Next next;
  std::string why;
  Duration left{};
};

TEST(JudgeRequest, SaysWhatComesNext) {
  const WallTime then{};
  const std::vector<Judged> table = {
      {"the list is under way",
       [](auto& f, auto&, auto&) {
         f.known = false;
         f.request = nullptr;
       },
       Next::wait, "not known yet", 5min},
      {"the list never succeeds",
       [](auto& f, auto&, auto&) {
         f.known = false;
         f.silence = 5min;
       },
       Next::evict, "could be created within 5m"},
      {"no request yet", [](auto& f, auto&, auto&) { f.request = nullptr; }, Next::create, "being created", 5min},
      {"it cannot be created",
       [](auto& f, auto&, auto&) {
         f.request = nullptr;
         f.silence = 5min;
       },
       Next::evict, "could be created within 5m"},
      {"somebody has deleted it",
       [](auto& f, auto&, auto&) {
         f.request = nullptr;
         f.created = true;
       },
       Next::evict, "somebody has deleted"},
      {"it is being deleted", [](auto&, auto& r, auto&) { r.terminating = true; }, Next::evict, "being deleted"},
      {"an earlier drain has withdrawn it", [](auto&, auto& r, auto&) { r.intent = k8s::intent_withdrawn; },
       Next::renew, "renewed", 5min},
      {"nobody has read the answers yet",
       [](auto& f, auto&, auto&) {
         f.answers_known = false;
         f.silence = 2min;
       },
       Next::wait, "not known yet what its responders", 3min},
      {"nobody can read the answers",
       [](auto& f, auto&, auto&) {
         f.answers_known = false;
         f.silence = 5min;
       },
       Next::evict, "could not be read within 5m"},
      {"nobody has answered", [](auto& f, auto&, auto&) { f.silence = 2min; }, Next::wait, "no responder has answered",
       3min},
      {"nobody answers", [](auto& f, auto&, auto&) { f.silence = 5min; }, Next::evict, "within 5m"},
      {"a responder has its turn",
       [](auto& f, auto&, auto& p) {
         p.active = "acme.io/mover";
         f.process = &p;
         f.silence = 1min;
       },
       Next::wait, "acme.io/mover has its turn", 4min},
      {"a responder never answers",
       [](auto& f, auto&, auto& p) {
         p.active = "acme.io/mover";
         f.process = &p;
         f.silence = 5min;
       },
       Next::evict, "acme.io/mover has not answered"},
      {"a responder works",
       [&](auto& f, auto&, auto& p) {
         p.active = "acme.io/mover";
         p.heartbeat = then;
         p.message = "moving the disk";
         f.process = &p;
         f.silence = 20min;
       },
       Next::wait, "acme.io/mover works on its eviction: moving the disk", 1min},
      {"a responder stops",
       [&](auto& f, auto&, auto& p) {
         p.active = "acme.io/mover";
         p.heartbeat = then;
         f.process = &p;
         f.silence = 21min;
       },
       Next::evict, "acme.io/mover has not reported on its EvictionRequest for 21m"},
      {"Kubernetes evicts it itself",
       [](auto& f, auto&, auto& p) {
         p.active = k8s::imperative_evictor;
         f.process = &p;
       },
       Next::evict, "none of its responders"},
      {"all responders have failed",
       [](auto&, auto& r, auto&) {
         r.failed = true;
         r.observed_generation = 1;
         r.why_failed = "NoFurtherResponder: x";
       },
       Next::evict, "failed: NoFurtherResponder: x"},
      {"an earlier intent had failed",
       [](auto&, auto& r, auto&) {
         r.failed = true;
         r.generation = 2;
         r.observed_generation = 1;
       },
       Next::wait, "no responder has answered", 5min},
      {"the pod counts as evicted",
       [](auto&, auto& r, auto&) {
         r.evicted = true;
         r.observed_generation = 1;
       },
       Next::evict, "fulfilled"},
  };
  for (const Judged& one : table) {
    SCOPED_TRACE(one.name);
    k8s::EvictionRequest request = request_for(asked);
    k8s::EvictionProcess process = process_for(asked, "", {});
    RequestFacts facts;
    facts.request = &request;
    facts.known = true;
    facts.answers_known = true;
    facts.limit = 5min;
    one.arrange(facts, request, process);
    const RequestJudgement judgement = judge_request(facts);
    EXPECT_EQ(judgement.next, one.next);
    EXPECT_THAT(judgement.why, HasSubstr(one.why));
    if (one.next != Next::evict) EXPECT_EQ(judgement.left, one.left);
  }
}

class EvictionRequestTest : public ::testing::Test {
 protected:
  EvictionRequestTest() { options.eviction_requests = EvictionRequests::responders; }

  TrackedPod& track(const k8s::Pod& pod, PodState state = PodState::parked,
                    TrackedPod::Hold hold = TrackedPod::Hold::guard) {
    TrackedPod& tracked = pods[pod.uid];
    tracked.pod = pod;
    tracked.state = state;
    tracked.hold = hold;
    return tracked;
  }
  std::string held(const k8s::Pod& pod = asked) {
    const auto hold = book.held(pod, now);
    until = hold ? hold->until : TimePoint::max();
    return hold ? hold->reason : "";
  }
  std::vector<EvictionRequestBook::Step> steps(std::size_t most = 10) {
    return book.take_steps(pods, "node-uid", node, most, now);
  }
  void list_all() {
    book.requests_known();
    book.processes_known();
  }
  void learn(const k8s::EvictionRequest& request) { book.request_changed(request.uid, &request); }
  void learn(const k8s::EvictionProcess& process) { book.process_changed(process.uid, &process); }
  std::vector<std::string> diagnosed() {
    std::vector<TrackedPod*> leaving;
    for (auto& [uid, tracked] : pods) leaving.push_back(&tracked);
    std::vector<DiagnosisFact> facts;
    book.diagnose(leaving, facts);
    std::vector<std::string> codes;
    for (const DiagnosisFact& fact : facts) codes.push_back(fact.code);
    return codes;
  }

  Options options;
  SeededRng rng{1};
  TimePoint now{1h};
  WallTime wall{std::chrono::hours(24 * 365)};
  TimePoint until{};
  std::map<std::string, TrackedPod> pods;
  Node node = Node::cordoned;
  EvictionRequestBook book{options, rng, [this] { return wall; }};
};

TEST_F(EvictionRequestTest, CreatesARequestForThePodInstance) {
  track(asked);
  EXPECT_EQ(held(), reason::eviction_requested);
  EXPECT_THAT(steps(), IsEmpty()) << "an earlier drain may have left a request";
  list_all();
  EXPECT_EQ(held(), reason::eviction_requested);
  EXPECT_EQ(until, now + options.eviction_request_limit);
  const auto sent = steps();
  ASSERT_THAT(sent, SizeIs(1));
  EXPECT_EQ(sent[0].kind, Kind::create);
  EXPECT_EQ(sent[0].request.name, "haulout-" + asked.uid);
  EXPECT_EQ(sent[0].request.pod_uid, asked.uid);
  EXPECT_EQ(sent[0].request.labels.at(std::string(k8s::request_node_label)), "node-uid");
  EXPECT_EQ(sent[0].request.intent, k8s::intent_eviction);
  EXPECT_THAT(steps(), IsEmpty()) << "it is in flight";
  EXPECT_TRUE(book.may_have_requested(pods)) << "the answer may be lost";
  book.answered(sent[0], request_for(asked), now);
  EXPECT_THAT(steps(), IsEmpty());
}

TEST_F(EvictionRequestTest, AsksOnlyForPodsWhoseTurnHasCome) {
  track(asked);
  list_all();
  EXPECT_THAT(steps(), IsEmpty()) << "another guard holds the pod";
}

TEST_F(EvictionRequestTest, HoldsNoOtherPod) {
  list_all();
  EXPECT_EQ(held(a_pod("web-0")), "") << "it has no responders";
  k8s::Pod member = asked;
  member.pod_group = "training";
  EXPECT_EQ(held(member), "") << "the API excludes members of PodGroups";
  options.policy.waits_for_work = false;
  EXPECT_EQ(held(), "") << "the machine goes down";
  options.policy.waits_for_work = true;
  options.eviction_requests = EvictionRequests::off;
  EXPECT_EQ(held(), "");
  EXPECT_FALSE(book.may_have_requested(pods));
}

TEST_F(EvictionRequestTest, TakesOverTheRequestOfAnEarlierDrainWithItsTime) {
  track(asked);
  held();
  k8s::EvictionRequest before = request_for(asked);
  before.created = wall - 4min;
  learn(before);
  list_all();
  EXPECT_EQ(held(), reason::eviction_requested);
  EXPECT_EQ(until, now + 1min);
  EXPECT_THAT(steps(), IsEmpty());
  EXPECT_TRUE(book.may_have_requested(pods));
  now += 1min;
  EXPECT_EQ(held(), "");
  EXPECT_THAT(diagnosed(), ::testing::ElementsAre(reason::eviction_request_failed));
}

TEST_F(EvictionRequestTest, EachResponderHasItsOwnTime) {
  track(asked);
  list_all();
  learn(request_for(asked));
  held();
  now += 4min;
  wall += 4min;
  learn(process_for(asked, "acme.io/mover", wall));
  EXPECT_EQ(held(), reason::eviction_requested);
  EXPECT_EQ(until, now + 5min);
  now += 4min;
  wall += 4min;
  learn(process_for(asked, "acme.io/mover", wall - 4min, wall));
  EXPECT_EQ(held(), reason::eviction_requested);
  EXPECT_EQ(until, now + heartbeat_limit);
  now += heartbeat_limit;
  EXPECT_EQ(held(), "");
  learn(process_for(asked, "acme.io/second", wall));
  wall += 21min;
  EXPECT_EQ(held(), "") << "its turn began long ago";
}

TEST_F(EvictionRequestTest, AHeartbeatOfTheFutureHoldsNoPodForEver) {
  track(asked);
  list_all();
  learn(request_for(asked));
  learn(process_for(asked, "acme.io/mover", wall, wall + std::chrono::hours(24 * 365)));
  EXPECT_EQ(held(), reason::eviction_requested);
  EXPECT_EQ(until, now + heartbeat_limit);
  now += heartbeat_limit;
  EXPECT_EQ(held(), "");
}

TEST_F(EvictionRequestTest, WithdrawsTheRequestOfAPodThatNeedNotLeave) {
  learn(request_for(asked));
  list_all();
  track(asked, PodState::parked, TrackedPod::Hold::policy);
  auto sent = steps();
  ASSERT_THAT(sent, SizeIs(1));
  EXPECT_EQ(sent[0].kind, Kind::withdraw);
  k8s::EvictionRequest withdrawn = request_for(asked, k8s::intent_withdrawn);
  withdrawn.generation = 2;
  book.answered(sent[0], withdrawn, now);
  EXPECT_THAT(steps(), IsEmpty());
  EXPECT_FALSE(book.may_have_requested(pods));
  track(asked);
  EXPECT_EQ(held(), reason::eviction_requested);
  sent = steps();
  ASSERT_THAT(sent, SizeIs(1)) << "policy lets the pod go now";
  EXPECT_EQ(sent[0].kind, Kind::renew);
}

TEST_F(EvictionRequestTest, TouchesNoRequestOfOthers) {
  k8s::EvictionRequest other = request_for(asked);
  other.requester = "acme.io/descheduler";
  learn(other);
  list_all();
  track(asked, PodState::left);
  EXPECT_THAT(steps(), IsEmpty());
  EXPECT_FALSE(book.may_have_requested(pods));
  track(asked);
  held();
  const auto sent = steps();
  ASSERT_THAT(sent, SizeIs(1));
  EXPECT_EQ(sent[0].kind, Kind::create);
  book.answered(sent[0], other, now);  // the name is in use
  EXPECT_EQ(held(), "") << "it is evicted as without a request";
  EXPECT_THAT(steps(), IsEmpty());
}

TEST_F(EvictionRequestTest, ANamesakeGetsItsOwnRequest) {
  learn(request_for(asked));
  list_all();
  k8s::Pod namesake = asked;
  namesake.uid = "another-uid";
  track(asked, PodState::vanished);
  track(namesake);
  EXPECT_EQ(held(namesake), reason::eviction_requested);
  const auto sent = steps();
  ASSERT_THAT(sent, SizeIs(1));
  EXPECT_EQ(sent[0].kind, Kind::create);
  EXPECT_EQ(sent[0].request.pod_uid, "another-uid");
}

TEST_F(EvictionRequestTest, WithoutTheApiOrTheRightPodsAreEvictedAsEver) {
  track(asked);
  held();
  book.not_usable(status_error(404, "NotFound"));
  EXPECT_EQ(held(), "");
  EXPECT_THAT(diagnosed(), ::testing::ElementsAre(reason::eviction_requests_unserved));
  book.not_usable(status_error(403, "Forbidden"));
  EXPECT_THAT(diagnosed(), ::testing::ElementsAre(reason::right_missing));
}

TEST_F(EvictionRequestTest, EachObstacleHasItsOwnDiagnosis) {
  book.not_usable(status_error(400, "BadRequest"));
  EXPECT_THAT(diagnosed(), ::testing::ElementsAre(reason::eviction_request_failed));
  for (const auto& [code, name, diagnosis] : {std::tuple(403, "Forbidden", reason::right_missing),
                                              std::tuple(404, "NotFound", reason::eviction_requests_unserved),
                                              std::tuple(400, "BadRequest", reason::eviction_request_failed)}) {
    EvictionRequestBook other(options, rng, [this] { return wall; });
    other.processes_unreadable(status_error(code, name));
    std::vector<DiagnosisFact> facts;
    other.diagnose({}, facts);
    ASSERT_THAT(facts, SizeIs(1));
    EXPECT_EQ(facts[0].code, diagnosis);
    EXPECT_THAT(facts[0].message, HasSubstr("cannot see whether responders answer"));
  }
}

// The Evictions are listed apart from the requests. Until both are known, the age of the request is no silence.
TEST_F(EvictionRequestTest, JudgesNoSilenceBeforeTheAnswersAreKnown) {
  track(asked);
  held();
  k8s::EvictionRequest before = request_for(asked);
  before.created = wall - 6min;
  learn(before);
  book.requests_known();
  EXPECT_EQ(held(), reason::eviction_requested);
  EXPECT_EQ(until, now + options.eviction_request_limit);
  now += 1min;
  wall += 1min;
  learn(process_for(asked, "acme.io/mover", wall - 6min, wall - 1min));
  book.processes_known();
  EXPECT_EQ(held(), reason::eviction_requested) << "its responder works";
  EXPECT_EQ(until, now + heartbeat_limit - 1min);
}

TEST_F(EvictionRequestTest, CreatesARequestBeforeTheAnswersAreKnown) {
  track(asked);
  book.requests_known();
  held();
  EXPECT_THAT(steps(), SizeIs(1));
}

TEST_F(EvictionRequestTest, AHugeLimitIsNoTimeInThePast) {
  options.eviction_request_limit = Duration::max();
  track(asked);
  list_all();
  EXPECT_EQ(held(), reason::eviction_requested);
  EXPECT_EQ(until, TimePoint::max());
}

TEST_F(EvictionRequestTest, TheUidAloneIdentifiesNoPod) {
  track(asked);
  k8s::EvictionRequest elsewhere = request_for(asked);
  elsewhere.ns = "elsewhere";
  learn(elsewhere);
  k8s::EvictionRequest named = request_for(asked);
  named.uid = "another";
  named.pod_name = "vm-1";
  learn(named);
  k8s::EvictionProcess process = process_for(asked, std::string(k8s::imperative_evictor), wall);
  process.ns = "elsewhere";
  learn(process);
  list_all();
  EXPECT_EQ(held(), reason::eviction_requested);
  const auto sent = steps();
  ASSERT_THAT(sent, SizeIs(1));
  EXPECT_EQ(sent[0].kind, Kind::create);
  book.answered(sent[0], request_for(asked), now);
  EXPECT_EQ(held(), reason::eviction_requested) << "the Eviction of another namespace says nothing about it";
}

TEST_F(EvictionRequestTest, WithdrawsWhileTheNodeIsSchedulable) {
  track(asked);
  learn(request_for(asked));
  list_all();
  held();
  node = Node::in_doubt;
  EXPECT_THAT(steps(), IsEmpty());
  node = Node::schedulable;
  auto sent = steps();
  ASSERT_THAT(sent, SizeIs(1));
  EXPECT_EQ(sent[0].kind, Kind::withdraw);
  k8s::EvictionRequest withdrawn = request_for(asked, k8s::intent_withdrawn);
  withdrawn.generation = 2;
  book.answered(sent[0], withdrawn, now);
  EXPECT_THAT(steps(), IsEmpty());
  now += 6min;
  wall += 6min;
  node = Node::cordoned;
  EXPECT_EQ(held(), reason::eviction_requested) << "it waits anew";
  EXPECT_EQ(until, now + options.eviction_request_limit);
  sent = steps();
  ASSERT_THAT(sent, SizeIs(1));
  EXPECT_EQ(sent[0].kind, Kind::renew);
}

TEST_F(EvictionRequestTest, InDoubtAboutTheCordonItStillWithdraws) {
  node = Node::in_doubt;
  learn(request_for(asked));
  list_all();
  track(asked, PodState::left);
  EXPECT_THAT(steps(), SizeIs(1));
}

TEST_F(EvictionRequestTest, APodThatPolicyHasHeldLongWaitsAnew) {
  for (const bool has_request : {false, true}) {
    SCOPED_TRACE(has_request);
    track(asked);
    list_all();
    held();
    if (has_request) learn(request_for(asked));
    track(asked, PodState::parked, TrackedPod::Hold::policy);
    const auto sent = steps();
    ASSERT_THAT(sent, SizeIs(has_request ? 1 : 0));
    if (has_request) book.answered(sent[0], request_for(asked, k8s::intent_withdrawn), now);
    now += 1h;
    track(asked);
    EXPECT_EQ(held(), reason::eviction_requested);
    EXPECT_EQ(until, now + options.eviction_request_limit);
  }
}

TEST_F(EvictionRequestTest, ARequestThatIsSetBackIsNotSentInALoop) {
  track(asked);
  learn(request_for(asked, k8s::intent_withdrawn));
  list_all();
  held();
  const auto sent = steps();
  ASSERT_THAT(sent, SizeIs(1));
  book.answered(sent[0], request_for(asked, k8s::intent_withdrawn), now);  // a webhook has set the intent back
  EXPECT_THAT(steps(), IsEmpty()) << "a pause comes first";
  const TimePoint first = book.next_due(now);
  EXPECT_THAT(first - now, ::testing::Le(1s));
  now = first;
  const auto again = steps();
  ASSERT_THAT(again, SizeIs(1));
  book.answered(again[0], request_for(asked, k8s::intent_withdrawn), now);
  EXPECT_THAT(book.next_due(now) - now, ::testing::Gt(1s - 1ms)) << "the pauses grow";
}

// The answer is as asked for each time, and then somebody sets the intent back.
TEST_F(EvictionRequestTest, FromTheSecondFlipOfARequestOnAPauseComesFirst) {
  track(asked);
  learn(request_for(asked, k8s::intent_withdrawn));
  list_all();
  held();
  const auto flip = [&] {
    const auto sent = steps();
    if (sent.size() != 1) return false;
    book.answered(sent[0], request_for(asked), now);
    learn(request_for(asked, k8s::intent_withdrawn));
    return true;
  };
  EXPECT_TRUE(flip());
  EXPECT_TRUE(flip()) << "a change of policy takes effect at once";
  Duration before{};
  for (int i = 0; i < 4; ++i) {
    EXPECT_FALSE(flip()) << i;
    const Duration pause = book.next_due(now) - now;
    EXPECT_GE(pause, before) << i;
    before = pause;
    now += pause;
    EXPECT_TRUE(flip()) << i;
  }
  EXPECT_GE(before, 2s);
}

TEST_F(EvictionRequestTest, KnowsWhichRequestsMayTakeEffectLater) {
  track(asked);
  list_all();
  EXPECT_FALSE(book.asked(pods).seen);
  held();
  auto sent = steps();
  ASSERT_THAT(sent, SizeIs(1));
  EXPECT_TRUE(book.asked(pods).seen);
  EXPECT_TRUE(book.asked(pods).unanswered) << "it is in flight";
  book.answered(sent[0], Error(Errc::reset, "connection reset"), now);
  EXPECT_TRUE(book.asked(pods).unanswered) << "its answer is lost";
  now = book.next_due(now);
  sent = steps();
  ASSERT_THAT(sent, SizeIs(1));
  book.answered(sent[0], request_for(asked), now);
  EXPECT_FALSE(book.asked(pods).unanswered);
}

TEST_F(EvictionRequestTest, ARefusalThatLastsEndsTheWait) {
  track(asked);
  list_all();
  held();
  for (int attempt = 0; attempt < 2; ++attempt) {
    const auto sent = steps();
    ASSERT_THAT(sent, SizeIs(1)) << attempt;
    book.answered(sent[0], status_error(422, "Invalid"), now);
    EXPECT_THAT(steps(), IsEmpty()) << "a pause comes first";
    now = book.next_due(now);
  }
  EXPECT_EQ(held(), "");
  EXPECT_THAT(steps(), IsEmpty());
}

}  // namespace
}  // namespace haulout::drain::testing
