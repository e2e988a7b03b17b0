#include "cli/drain/wording.hpp"

#include "base/text.hpp"
#include "cli/drain/jobs.hpp"
#include "tests/cli/drain/samples.hpp"
#include "tests/support/text_sink.hpp"

namespace haulout::cli {
namespace {

using drain::DryRunMode;
using drain::EventType;
using drain::Outcome;
using drain::PodOutcome;
using samples::event;
using samples::pod;
using samples::report;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using haulout::testing::TextSink;

TEST(TextTest, OneIsNoPlural) {
  EXPECT_EQ(count_of(0, "attempt"), "0 attempts");
  EXPECT_EQ(count_of(1, "attempt"), "1 attempt");
  EXPECT_EQ(count_of(2, "attempt"), "2 attempts");
}

TEST(WordingTest, OneLinePerEvent) {
  const auto web = pod("web-0", PodOutcome::evicted);
  auto first = pod("web-0", PodOutcome::planned);
  first.attempts = 1;
  auto again = first;
  again.attempts = 2;
  const auto gone = pod("web-0", PodOutcome::gone);
  const auto finished = pod("web-0", PodOutcome::skipped, "Finished", "has succeeded, so it does not run any more");
  const auto parked =
      pod("web-0", PodOutcome::waiting, "BlockedByBudget", "blocked by PodDisruptionBudget shop/web: allows none");
  const drain::Diagnosis zero{"BudgetNeverAllows", "PodDisruptionBudget shop/web", "it never allows one",
                              samples::at(0)};
  const std::vector<std::pair<drain::Event, std::optional<std::string>>> rows = {
      {event(EventType::planned, 0, nullptr, nullptr, "", {12, 0, 0, 0, 3}), "node/n1: 12 pods to evict, 3 skipped"},
      {event(EventType::cordoned), std::nullopt},
      {event(EventType::eviction_sent, 0, &first), "evicting pod shop/web-0"},
      {event(EventType::eviction_sent, 0, &again), std::nullopt},
      {event(EventType::signal_sent, 0, &first), "evicting pod shop/web-0"},
      {event(EventType::signal_sent, 0, &again), std::nullopt},
      {event(EventType::evicted, 0, &web), std::nullopt},
      {event(EventType::parked, 0, &parked),
       "pod shop/web-0 is blocked by PodDisruptionBudget shop/web: allows none [BlockedByBudget]"},
      {event(EventType::resumed, 0, &parked), std::nullopt},
      {event(EventType::vanished, 0, &web), "pod/web-0 evicted"},
      {event(EventType::vanished, 0, &gone), "pod/web-0 gone"},
      {event(EventType::terminating, 0, &web), "pod shop/web-0 is terminating"},
      {event(EventType::left, 0, &finished),
       "pod shop/web-0 stays: has succeeded, so it does not run any more [Finished]"},
      {event(EventType::late_pod, 0, &first),
       "pod shop/web-0 appeared on the node during the drain; the same rules apply to it"},
      {event(EventType::diagnosis_raised, 0, nullptr, &zero),
       "problem: BudgetNeverAllows PodDisruptionBudget shop/web: it never allows one"},
      {event(EventType::diagnosis_withdrawn, 0, nullptr, &zero),
       "resolved: BudgetNeverAllows PodDisruptionBudget shop/web"},
      {event(EventType::throttled, 0, nullptr, nullptr, "the server answered 429 Too Many Requests"),
       "evictions wait: the server answered 429 Too Many Requests"},
      {event(EventType::disconnected, 0, nullptr, nullptr, "reset"), "waiting for the API server: reset"},
      {event(EventType::reconnected), "no longer waiting for the API server"},
      {event(EventType::uncordoned), "node/n1 uncordoned"},
      {event(EventType::finished), std::nullopt},
  };
  for (const auto& [occurred, line] : rows) EXPECT_EQ(line_of(occurred, {}), line) << drain::to_string(occurred.type);
}

TEST(WordingTest, VolumesAreNamedWithTheirClaims) {
  const auto volume = samples::volume("pv-1", drain::VolumeOutcome::detaching);
  auto waiting = event(EventType::volume_waiting);
  waiting.volume = &volume;
  EXPECT_EQ(line_of(waiting, {}), "volume pv-1 (claim shop/data) is still attached: csi.example.com is detaching it");
  auto detached = event(EventType::volume_detached);
  detached.volume = &volume;
  EXPECT_EQ(line_of(detached, {}), "volume pv-1 (claim shop/data) detached");
}

TEST(WordingTest, AVolumeThatIsWaitedForElsewhere) {
  const auto line = [](const drain::VolumeReport& volume) {
    auto told = event(EventType::volume_reattach);
    told.volume = &volume;
    return line_of(told, {}).value_or("");
  };
  using drain::Reattach;
  EXPECT_EQ(line(samples::detached_volume("pv-1", Reattach::waiting, "no other node has requested it yet")),
            "volume pv-1 (claim shop/data) is detached, waiting until another node has attached it: no other node has "
            "requested it yet");
  EXPECT_EQ(line(samples::detached_volume("pv-1", Reattach::attached)),
            "volume pv-1 (claim shop/data) is attached to node n2");
  EXPECT_EQ(line(samples::detached_volume("pv-1", Reattach::unclaimed, "nobody asks")),
            "volume pv-1 (claim shop/data) is not attached to another node, and the drain does not wait for that: "
            "nobody asks");
  EXPECT_EQ(line(samples::detached_volume("pv-1", Reattach::late, "no other node has it")),
            "Warning: volume pv-1 (claim shop/data): no other node has it");
}

TEST(WordingTest, TheSummaryNotesWhatNoOtherNodeHad) {
  drain::Report done = report(Outcome::drained, {pod("a", PodOutcome::evicted)});
  done.volumes = {samples::detached_volume("pv-1", drain::Reattach::late, "no other node has it"),
                  samples::detached_volume("pv-2", drain::Reattach::attached),
                  samples::detached_volume("pv-3", drain::Reattach::unclaimed, "nobody asks")};
  EXPECT_THAT(summary(done, {}).errors, Contains("Warning: volume pv-1 (claim shop/data): no other node has it"));
}

TEST(WordingTest, SummaryWithVolumes) {
  drain::Report done = report(Outcome::drained, {pod("a", PodOutcome::evicted)});
  done.volumes = {samples::volume("pv-1", drain::VolumeOutcome::detached),
                  samples::volume("pv-2", drain::VolumeOutcome::leaked)};
  done.diagnoses = {{"VolumeAttachmentLeaked", "VolumeAttachment csi-1", "nobody uses it", samples::at(0)}};
  const Summary good = summary(done, {});
  EXPECT_THAT(good.out, ElementsAre("node/n1 drained"));
  EXPECT_THAT(good.errors, ElementsAre("1 pod deleted, 0 skipped, 1 volume detached, took 1m05s",
                                       "Warning: VolumeAttachmentLeaked VolumeAttachment csi-1: nobody uses it"));
  drain::Report stuck = report(Outcome::blocked, {pod("a", PodOutcome::evicted)});
  stuck.volumes = {samples::volume("pv-1", drain::VolumeOutcome::detaching)};
  EXPECT_THAT(summary(stuck, {}).errors,
              Contains("  volume pv-1 (claim shop/data) is still attached: csi.example.com is detaching it"));
}

TEST(WordingTest, DryRunAndDeletionAreNamed) {
  auto web = pod("web-0", PodOutcome::evicted);
  EXPECT_EQ(line_of(event(EventType::eviction_sent, 0, &web), {DryRunMode::server, false, ""}),
            "evicting pod shop/web-0 (server dry run)");
  EXPECT_EQ(line_of(event(EventType::eviction_sent, 0, &web), {DryRunMode::none, true, ""}), "deleting pod shop/web-0");
  EXPECT_EQ(line_of(event(EventType::vanished, 0, &web), {DryRunMode::none, true, ""}), "pod/web-0 deleted");
  EXPECT_EQ(cordon_line("n1", true, true, DryRunMode::none), "node/n1 cordoned");
  EXPECT_EQ(cordon_line("n1", false, true, DryRunMode::none), "node/n1 already cordoned");
  EXPECT_EQ(cordon_line("n1", false, false, DryRunMode::none), "node/n1 already uncordoned");
  EXPECT_EQ(cordon_line("n1", true, false, DryRunMode::client), "node/n1 uncordoned (dry run)");
}

TEST(WordingTest, LinesOfALineViewGoToTheText) {
  TextSink text;
  TextSink errors;
  Console console(text, errors);
  LineView view(console, {});
  const auto web = pod("web-0", PodOutcome::evicted);
  view.on_event(event(EventType::settling));
  view.on_event(event(EventType::vanished, 0, &web));
  view.on_event(event(EventType::terminating, 0, &web));
  EXPECT_EQ(text.text, "pod/web-0 evicted\n");
  EXPECT_EQ(errors.text, "pod shop/web-0 is terminating\n") << "kubectl has no such line";
}

TEST(WordingTest, SkippedPodsAreNamedByReason) {
  auto managed = pod("d", PodOutcome::planned);
  managed.controller = "ReplicaSet/web";
  const auto lines = skip_warnings(report(Outcome::failed, {pod("a", PodOutcome::skipped, "DaemonSetManaged"),
                                                            pod("b", PodOutcome::skipped, "DaemonSetManaged"),
                                                            pod("c", PodOutcome::skipped, "NotSelected"), managed}));
  EXPECT_THAT(lines, ElementsAre("Warning: ignoring DaemonSet-managed Pods: shop/a, shop/b",
                                 "Warning: ignoring Pods that --pod-selector does not match: shop/c"));
}

// The warning about pods without a controller has the text of kubectl's own warning.
TEST(WordingTest, ForcedPodsThatNothingBringsBackAreNamed) {
  auto managed = pod("web-0", PodOutcome::planned);
  managed.controller = "ReplicaSet/web";
  auto held = pod("held", PodOutcome::waiting, "DoNotDisrupt");
  const auto lines = skip_warnings(report(
      Outcome::drained, {managed, pod("bare", PodOutcome::planned), pod("done", PodOutcome::planned, "Finished"),
                         pod("lone", PodOutcome::planned), held, pod("static", PodOutcome::skipped, "MirrorPod")}));
  EXPECT_THAT(lines, ElementsAre("Warning: deleting Pods that declare no controller: shop/bare, shop/lone"));
}

TEST(WordingTest, SummaryOfADrainedNode) {
  const Summary text = summary(report(Outcome::drained, {pod("a", PodOutcome::evicted), pod("b", PodOutcome::gone),
                                                         pod("c", PodOutcome::skipped)}),
                               {});
  EXPECT_THAT(text.out, ElementsAre("node/n1 drained"));
  EXPECT_THAT(text.errors, ElementsAre("2 pods deleted, 1 skipped, took 1m05s")) << "kubectl has no such line";
}

TEST(WordingTest, SummaryOfADryRun) {
  auto skipped = pod("c", PodOutcome::skipped);
  skipped.verdict = drain::Verdict::skip;
  const drain::Report planned = report(Outcome::drained, {pod("a", PodOutcome::planned), skipped});
  EXPECT_THAT(summary(planned, {DryRunMode::client, false, ""}).out,
              ElementsAre("evicting pod shop/a (dry run)", "node/n1 drained (dry run)"));
  EXPECT_THAT(summary(planned, {DryRunMode::client, true, ""}).out, Contains("evicting pod shop/a (dry run)"))
      << "as kubectl";
  EXPECT_THAT(summary(planned, {DryRunMode::server, true, ""}).out, Contains("pod/a deleted (server dry run)"));
  EXPECT_THAT(summary(planned, {DryRunMode::server, false, ""}).out,
              ElementsAre("evicting pod shop/a (server dry run)", "node/n1 drained (server dry run)"));
}

TEST(WordingTest, RefusalNamesEveryPodAndTheFlagThatAllowsIt) {
  const Summary text =
      summary(report(Outcome::refused,
                     {pod("a", PodOutcome::refused, "DaemonSetManaged"), pod("b", PodOutcome::refused, "EmptyDir"),
                      pod("c", PodOutcome::refused, "Unmanaged"), pod("d", PodOutcome::refused, "OrphanedDaemonSetPod"),
                      pod("e", PodOutcome::refused, "Novel"), pod("f", PodOutcome::refused, "Unmanaged")}),
              {});
  ASSERT_EQ(text.errors.size(), 6u);
  EXPECT_THAT(text.errors[0], HasSubstr("nothing was changed"));
  EXPECT_THAT(text.errors, Contains("  DaemonSet-managed Pods (use --ignore-daemonsets to ignore): shop/a"));
  EXPECT_THAT(text.errors, Contains(::testing::AllOf(HasSubstr("--delete-emptydir-data"), HasSubstr("shop/b"))));
  EXPECT_THAT(text.errors, Contains(::testing::AllOf(HasSubstr("--force"), HasSubstr("shop/c, shop/f"))));
  EXPECT_THAT(text.errors, Contains(::testing::AllOf(HasSubstr("--force"), HasSubstr("shop/d"))));
  EXPECT_THAT(text.errors, Contains("  Novel: shop/e"));
  EXPECT_THAT(text.out, IsEmpty());
}

TEST(WordingTest, RefusalNamesEachGangWithItsMembers) {
  const auto member = [](const char* name, const std::string& gang) {
    return pod(name, PodOutcome::refused, "GangMember", "a member of " + gang + ", which runs only as a whole");
  };
  const Summary text = summary(
      report(Outcome::refused,
             {member("a", "JobSet shop/train"), member("b", "PodGroup shop/other"), member("c", "JobSet shop/train")}),
      {});
  ASSERT_EQ(text.errors.size(), 3u);
  EXPECT_THAT(text.errors[1], ::testing::AllOf(HasSubstr("a member of JobSet shop/train"), HasSubstr("--gangs=wait"),
                                               ::testing::EndsWith(": shop/a, shop/c")));
  EXPECT_THAT(text.errors[2], ::testing::AllOf(HasSubstr("PodGroup shop/other"), ::testing::EndsWith(": shop/b")));
}

TEST(WordingTest, BlockedDrainNamesEachPodThatIsLeftWithItsCause) {
  auto stuck = pod("db-1", PodOutcome::terminating);
  stuck.evicted_at = samples::at(5);
  auto waiting = pod("web-0", PodOutcome::waiting, "BlockedByBudget", "needs 3 healthy, has 3");
  waiting.controller = "StatefulSet/web";
  drain::Report blocked = report(Outcome::blocked, {pod("a", PodOutcome::evicted), stuck, waiting});
  blocked.diagnoses.push_back({"BudgetNeverAllows", "PodDisruptionBudget shop/web", "raise it", samples::at(9)});
  blocked.cordon.after = true;
  EXPECT_THAT(summary(blocked, {}).errors,
              ElementsAre("error: node/n1 was not drained within 1m05s", "  1 of 3 pods deleted, 2 left, 0 skipped",
                          "  pod shop/db-1 terminating: was evicted 1m00s ago and has not been deleted; 'kubectl -n "
                          "shop describe pod db-1' may show why",
                          "  pod shop/web-0 (StatefulSet/web) waiting: needs 3 healthy, has 3 [BlockedByBudget]",
                          "  BudgetNeverAllows PodDisruptionBudget shop/web: raise it",
                          "node/n1 is cordoned; 'haulout uncordon n1' uncordons it"));
}

// Without a message, the line says that the node was not drained "within" the elapsed time, as if that were the limit
// that has passed. A message gives another cause, so the line says "after" instead.
TEST(WordingTest, ABlockedDrainThatSaysWhyNamesNoOtherLimit) {
  drain::Report blocked = report(Outcome::blocked);
  blocked.message = "PersistentVolume pv-data is still attached";
  EXPECT_THAT(summary(blocked, {}).errors,
              Contains("error: node/n1 was not drained after 1m05s: PersistentVolume pv-data is still attached"));
}

TEST(WordingTest, APodWithADiagnosisIsToldOnce) {
  const auto held = pod("db-1", PodOutcome::terminating);
  drain::Report blocked = report(Outcome::blocked, {held});
  blocked.diagnoses.push_back({"PodFinalizer", "pod shop/db-1", "its finalizers keep it", samples::at(9)});
  EXPECT_THAT(summary(blocked, {}).errors,
              ElementsAre(HasSubstr("was not drained"), HasSubstr("1 left"),
                          "  pod shop/db-1 terminating: its finalizers keep it [PodFinalizer]"));
}

TEST(WordingTest, ADryRunThatIsBlockedNamesOnlyWhatBlocksIt) {
  drain::Report blocked = report(Outcome::blocked, {pod("a", PodOutcome::planned),
                                                    pod("web-0", PodOutcome::waiting, "BlockedByBudget", "needs 3")});
  blocked.message = "dry run: 1 pod could be evicted now, 1 could not";
  EXPECT_THAT(summary(blocked, {DryRunMode::server, false, ""}).errors,
              ElementsAre("error: node/n1 was not drained: dry run: 1 pod could be evicted now, 1 could not",
                          "  pod shop/web-0 waiting: needs 3 [BlockedByBudget]"));
}

TEST(WordingTest, InterruptedDrainSaysWhatIsLeft) {
  const Summary text =
      summary(report(Outcome::cancelled, {pod("a", PodOutcome::evicted), pod("b", PodOutcome::planned)}), {});
  ASSERT_EQ(text.errors.size(), 3u);
  EXPECT_THAT(text.errors[0], HasSubstr("interrupted"));
  EXPECT_THAT(text.errors[1], HasSubstr("1 of 2 pods deleted, 1 left"));
  EXPECT_EQ(text.errors[2], "  1 pod not tried yet: shop/b");
}

TEST(WordingTest, APodThatWasJustEvictedIsNotSuspected) {
  auto going = pod("a", PodOutcome::terminating);
  going.evicted_at = samples::at(60);
  EXPECT_THAT(summary(report(Outcome::cancelled, {going}), {}).errors,
              Contains("  pod shop/a terminating: was evicted 5s ago"));
}

TEST(WordingTest, FailureCarriesItsCause) {
  drain::Report failed = report(Outcome::failed);
  failed.error = Error(Errc::unreachable, "connect to 10.0.0.1:6443: refused");
  EXPECT_THAT(summary(failed, {}).errors, ElementsAre(HasSubstr("connect to 10.0.0.1:6443: refused")));
}

TEST(TextTest, ServerTextCannotDriveTheTerminal) {
  EXPECT_EQ(printable("a\x1b[2Jb\nc\x7f"
                      "d\xC2\x9B"
                      "e"),
            "a [2Jb c d e");
  EXPECT_EQ(printable("a\xff\xC2"), "a\uFFFD\uFFFD") << "as the API server would write it";
  EXPECT_EQ(printable("\xE2\x80x\xC2\x20"), "\uFFFD\uFFFDx\uFFFD ");
  EXPECT_EQ(printable("gr\u00fc\u00dfe \u2026"), "gr\u00fc\u00dfe \u2026");
  const auto parked = pod("web-0", PodOutcome::waiting, "Webhook", "no\x1b]0;title\x07");
  EXPECT_THAT(line_of(event(EventType::parked, 0, &parked), {}).value(), Not(HasSubstr("\x1b")));
}

TEST(TextTest, AMessageBesideItsSubjectDoesNotNameItAgain) {
  EXPECT_EQ(without_subject("pod a/b is blocked by c", "pod a/b"), "blocked by c");
  EXPECT_EQ(without_subject("pod a/b carries an annotation", "pod a/b"), "carries an annotation");
  EXPECT_EQ(without_subject("pod a/bc is blocked", "pod a/b"), "pod a/bc is blocked");
  EXPECT_EQ(without_subject("its node is gone", "pod a/b"), "its node is gone");
}

TEST(TextTest, WrapsAtBlanks) {
  EXPECT_THAT(wrapped("one two three", 7), ElementsAre("one two", "three"));
  EXPECT_THAT(wrapped("one-two-three four", 4), ElementsAre("one-two-three", "four"));
  EXPECT_THAT(wrapped("", 4), IsEmpty());
}

TEST(TextTest, ShortensByCharacters) {
  EXPECT_EQ(shortened("abcdef", 6), "abcdef");
  EXPECT_EQ(shortened("abcdef", 5), "abcd\u2026");
  EXPECT_EQ(shortened("数据库", 2), "数\u2026");
  EXPECT_EQ(shortened("e\u0301\u0301\u0301", 3), "e\u0301\u2026");
}

TEST(TextTest, ClipsByColumns) {
  EXPECT_EQ(clipped("abcdef", 6), "abcdef");
  EXPECT_EQ(clipped("abcdef", 5), "abcd\u2026");
  EXPECT_EQ(clipped("abcdef", 5, false), "ab...");
  EXPECT_EQ(clipped("\u00e4\u00f6\u00fc\u00df", 3), "\u00e4\u00f6\u2026");
  EXPECT_EQ(clipped("abcdef", 0), "");
  EXPECT_EQ(columns("数据库"), 6u);
  EXPECT_EQ(columns("e\u0301"), 1u) << "combined";
  EXPECT_EQ(columns("a\xff\xc3"), 3u) << "no UTF-8";
  EXPECT_EQ(clipped("数据库正在备份", 7), "数据库…");
  EXPECT_EQ(clipped("a数据库正在备份", 7), "a数据…");
  EXPECT_EQ(clipped("数据库", 6), "数据库");
}

}  // namespace
}  // namespace haulout::cli
