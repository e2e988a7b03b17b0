// The implementation of Drain, shared by drain.cpp (stages and outcomes), preflight.cpp, evict.cpp and the other files
// named below. No public contract.
#pragma once

#include <set>

#include "drain/controller_book.hpp"
#include "drain/cordon.hpp"
#include "drain/diagnoses.hpp"
#include "drain/drain.hpp"
#include "drain/inquiries.hpp"
#include "drain/pipeline.hpp"
#include "drain/volume_questions.hpp"
#include "drain/volume_turns.hpp"
#include "drain/volumes.hpp"
#include "k8s/reflector.hpp"
#include "retry/notifier.hpp"
#include "retry/task_group.hpp"

namespace haulout::drain {

// Longer than the 10 s for which the server retries after conflicts on a budget or between pods of the same name.
// Shorter than the server's own limit of 60 s.
inline constexpr Duration evict_timeout = std::chrono::seconds(34);
inline constexpr Duration request_timeout = std::chrono::seconds(40);
// How often the drain lists again what has not changed for long, such as a pod that should be deleted. A watch can lose
// events without an error: after a restore of etcd from a backup the revisions start again.
inline constexpr Duration doubt_interval = std::chrono::minutes(5);
// If the plan is older than this, the drain makes it again before the first eviction. With several nodes, others may be
// drained first.
inline constexpr Duration plan_keeps = std::chrono::seconds(5);
// How long the drain relies on a view of budgets that is not connected.
inline constexpr Duration trusted_for = std::chrono::minutes(2);
// How long the plan waits for optional information that cannot be read. After that the drain goes on without it.
inline constexpr Duration patience_with_others = std::chrono::minutes(1);
// How long a request that the drain depends on may fail before that is reported.
inline constexpr Duration worth_a_word = std::chrono::seconds(5);
// How often the drain checks what no event reports, such as a protection that expires or a wall clock that jumps.
inline constexpr Duration look_interval = std::chrono::seconds(15);
// A pod counts as terminating for too long one second after the limit, as in kubectl.
inline constexpr Duration overdue_margin = std::chrono::seconds(1);

// Timer for a condition: due each `doubt_interval` while it holds, first after one such interval.
class HeldLong {
 public:
  bool due(bool held, TimePoint now);
  TimePoint next() const { return next_; }

 private:
  TimePoint next_ = TimePoint::max();  // max(): the condition does not hold
};

class Drain::Impl {
 public:
  Impl(k8s::Client& client, Rng& rng, DrainObserver& observer, Options options, std::string node);

  void expect_leaked(std::set<std::string> uids) { volumes_.expect_leaked(std::move(uids)); }
  const std::set<std::string>& leaked() const { return volumes_.leaked(); }
  boost::asio::awaitable<bool> preflight();
  boost::asio::awaitable<bool> cordon(bool own_time);
  boost::asio::awaitable<bool> evict(bool own_time);
  // If `goes_on` is false, emits `finished`: the drain has ended before its first eviction. Returns `goes_on`.
  bool tell_unless(bool goes_on);
  Report report() const;
  std::vector<Diagnosis> diagnoses() const { return board_.active(); }

 private:
  // Reports a request that fails repeatedly: once it has failed for a while, and again when it has succeeded or is
  // given up.
  class Trouble {
   public:
    Trouble(Impl& drain, std::string what) : drain_(drain), what_(std::move(what)), since_(drain.now()) {}
    void tell(const Error& error) { tell(error.message()); }
    void tell(const std::string& why);
    void over() const;

   private:
    Impl& drain_;
    std::string what_;
    TimePoint since_;
    std::string told_;
  };

  // The pending check whether the node is empty, from its first request until the server has answered.
  struct Unproved {
    Unproved(Impl& drain, TimePoint now)
        : since(now), trouble(drain, "that node " + drain.node_name_ + " is empty could not be proved") {}
    TimePoint since;
    std::string why{};  // why its last request failed; empty: none has failed
    Trouble trouble;
  };

  // preflight.cpp
  Task<k8s::Node> first_contact();
  // Repeats `request`. Each try ends at the drain's deadline, or earlier after `timeout`. A list needs no `timeout`:
  // each of its pages has a limit (k8s::longest_page).
  template <class T>
  Task<T> insist(std::string what, std::function<Task<T>(TimePoint)> request, std::optional<Duration> timeout = {},
                 TimePoint limit = TimePoint::max());
  boost::asio::awaitable<void> look_up_daemon_sets(std::vector<k8s::Pod> pods);
  boost::asio::awaitable<bool> permitted(k8s::ResourceAttributes attributes);
  bool refuse_by_rights(const k8s::ResourceAttributes& attributes, std::string_view what);
  boost::asio::awaitable<bool> review_permissions();
  boost::asio::awaitable<void> list_budgets();
  void learn_budgets(const std::vector<k8s::PodDisruptionBudget>& listed);
  bool refuse_by_policy();

  // guarding.cpp
  boost::asio::awaitable<bool> look_up_controllers(std::vector<k8s::Pod> pods, bool anew);
  boost::asio::awaitable<bool> list_controlled_pods();
  void look_at_controllers(TaskGroup& group);
  boost::asio::awaitable<void> resolve_controllers();
  boost::asio::awaitable<void> follow_namespace(std::string ns);
  boost::asio::awaitable<void> resolve_controller(ControllerQuestion question);
  Task<Controller> look_up(ControllerQuestion question, TimePoint until, TimePoint others_until);
  Task<Controller> look_up_scale(k8s::OwnerReference owner, std::string ns, TimePoint until);
  void controllers_news();
  std::vector<std::string> held_of(const Controller& controller) const;
  void diagnose_controllers(TimePoint at, std::vector<DiagnosisFact>& facts) const;

  // volume_wait.cpp
  bool wants_volumes() const;
  bool waits_for_volumes() const;
  bool requires_volumes() const;
  bool resumes() const;
  bool concerns(const k8s::VolumeAttachment& attachment) const;
  boost::asio::awaitable<bool> list_volumes();
  void take_turns();
  void look_at_volumes(TaskGroup& group);
  boost::asio::awaitable<void> follow_volumes();
  boost::asio::awaitable<void> doubt_volumes();
  TimePoint doubt_volumes_at() const;
  Task<> volumes_listed();
  bool volumes_clear() const;
  bool reattaching() const;
  boost::asio::awaitable<bool> volumes_confirmed();
  bool volume_is_past_limit() const;
  boost::asio::awaitable<bool> ended_by_volume();
  void diagnose_volumes(TimePoint at, std::vector<DiagnosisFact>& facts) const;

  // volume_claims.cpp
  Task<std::string> claim_of(std::string name, TimePoint limit);
  boost::asio::awaitable<std::optional<Error>> ask_whose(std::string volume, TimePoint limit);
  std::optional<std::string> due_question();
  boost::asio::awaitable<bool> resolve_at_first();
  boost::asio::awaitable<void> resolve_volumes();
  boost::asio::awaitable<void> ask_node_for_volumes();

  // inquire.cpp
  boost::asio::awaitable<void> inquire();
  boost::asio::awaitable<std::optional<Error>> ask(const Inquiries::Question& question);
  boost::asio::awaitable<std::optional<Error>> ask_for_members(std::string budget_uid);
  boost::asio::awaitable<std::optional<Error>> ask_for_namespace(std::string name);
  boost::asio::awaitable<std::optional<Error>> ask_for_service(std::string key);
  boost::asio::awaitable<std::optional<Error>> ask_for_local_volumes(std::string pod_uid);

  // doubts.cpp
  bool looks_over(TimePoint now);
  void look_at_end(TaskGroup& group);
  boost::asio::awaitable<void> prove_end();
  boost::asio::awaitable<void> prove_emptiness();
  void not_proved(const Error& error, std::string_view what, std::string_view right);
  void proof_answered();
  TimePoint unproved_told_at() const;
  void diagnose_proof(TimePoint at, std::vector<DiagnosisFact>& facts) const;
  std::string why_not_over() const;
  // Reads the Node. Returns true if what the drain then knows of it is at least as new as the server's answer. Returns
  // false if the server has no such Node, but its watch delivered an event meanwhile. Fails as the request fails; a
  // Node that does not exist is no failure.
  Task<bool> read_node();
  boost::asio::awaitable<bool> node_confirmed();
  void doubt_node_for_late_pods(TaskGroup& group);
  boost::asio::awaitable<void> doubt_node();
  boost::asio::awaitable<void> doubt_pods();
  void doubt_what_holds(TaskGroup& group);
  boost::asio::awaitable<void> doubt_budgets();
  boost::asio::awaitable<void> doubt_namespaces();

  // evict.cpp
  bool plan_holds() const;
  boost::asio::awaitable<bool> look_again();
  boost::asio::awaitable<void> loop(TaskGroup& group);
  // Runs the checks that look at every pod. May end the drain.
  void look_around(TaskGroup& group);
  // Time until which a view may leave watch events unread if they can wait for `patience`.
  TimePoint gathered_at(Duration patience) const;
  void hurry_views();
  // Ends the drain if it cannot succeed any more.
  void conclude(TimePoint now);
  boost::asio::awaitable<void> evict_one(std::string uid, std::string ns, std::string name);
  boost::asio::awaitable<void> follow_pods();
  boost::asio::awaitable<void> follow_budgets();
  boost::asio::awaitable<void> follow_node();
  boost::asio::awaitable<void> poll_node();
  void see_node(const k8s::Node* node);
  void watch_health();
  void update_diagnoses(TimePoint now);
  TimePoint overdue_at(TimePoint at) const;
  TimePoint next_wake(TimePoint now) const;
  boost::asio::awaitable<bool> dry_run();
  boost::asio::awaitable<Result<>> simulate_eviction(std::string uid);

  // fit_check.cpp
  std::set<std::string> leaving_pods() const;
  void add_unanswered(const std::set<std::string>& leaving);
  boost::asio::awaitable<bool> check_fit();

  // drain.cpp
  k8s::DryRun wire_dry_run() const;
  // Sends one eviction, or a deletion if `delete_instead_of_evict` is set.
  Task<> request_removal(std::string uid, std::string ns, std::string name);
  void emit(EventType type, const PodReport* pod = nullptr, const Diagnosis* diagnosis = nullptr,
            std::string message = {}, const VolumeReport* volume = nullptr);
  bool end(Outcome outcome, std::string message);
  bool fail(const Error& error, std::string_view what);
  bool give_up(const Error& error, std::string_view what);
  boost::asio::awaitable<void> restore_cordon();
  // Keeps `changes_cordon_` set if the change failed but may have taken effect: the response to one of the tries may be
  // lost, whatever the last try returned.
  Task<CordonChange> change_cordon(std::string what, std::function<Task<CordonChange>(TimePoint)> attempt);
  void show_cordon(const k8s::Node& node);
  boost::asio::awaitable<void> undo_unanswered_cordon();
  TimePoint now() const { return clock_.now(); }
  TimePoint within(Duration duration) const { return std::min(deadline_, saturating_add(now(), duration)); }
  // Returns true if the drain's own deadline ended the request. Such an error says nothing about the server.
  bool cut_off(const Error& error) const { return error.code() == Errc::timeout && now() >= deadline_; }
  void start_time();

  k8s::Client& client_;
  Clock& clock_;
  Rng& rng_;
  DrainObserver& observer_;
  Options options_;
  std::string node_name_;

  TimePoint deadline_ = TimePoint::max();
  bool ended_ = false;
  Report report_;
  DaemonSetStates daemon_sets_;
  ControllerBook controllers_;
  std::optional<Pipeline> pipeline_;
  DiagnosisBoard board_;
  NodeFacts node_facts_;
  Inquiries inquiries_;
  bool inquires_ = false;
  k8s::Node node_;
  k8s::ListMeta pods_meta_;            // resourceVersion from which the watch of pods starts
  std::vector<k8s::Pod> listed_pods_;  // moved into the view when the eviction starts
  std::optional<k8s::List<k8s::PodDisruptionBudget>> listed_budgets_;
  std::map<std::string, k8s::List<k8s::Pod>> listed_namespaces_;        // listed pods with controllers, by namespace
  std::map<std::string, std::map<std::string, std::string>> scalable_;  // plural names by API version, then by kind
  bool resolves_controllers_ = false;
  VolumeBook volumes_;
  VolumeTurns turns_;
  VolumeQuestions questions_;
  std::optional<k8s::List<k8s::VolumeAttachment>> listed_volumes_;
  std::optional<Error> volumes_error_;    // why volumes are not waited for; unset if nothing prevents it
  std::optional<Error> volumes_trouble_;  // error of the last request about volumes; unset if it succeeded
  bool volumes_resolved_ = false;         // at least one PersistentVolume could be read
  bool follows_volumes_ = false;
  bool resolves_volumes_ = false;
  bool asks_node_for_volumes_ = false;
  TimePoint doubt_volumes_not_before_{};
  Backoff doubt_volumes_backoff_{{std::chrono::seconds(10), 2.0, doubt_interval, BackoffOptions::Jitter::equal}};
  bool cordoned_by_us_ = false;
  bool changes_cordon_ = false;  // a change of the cordon was requested, and its effect is not known
  TimePoint cordoned_at_{};
  TimePoint planned_at_{};

  // Used only during evict().
  std::unique_ptr<Notifier> changed_;
  std::unique_ptr<k8s::Reflector<k8s::Pod>> pods_view_;
  std::unique_ptr<k8s::Reflector<k8s::PodDisruptionBudget>> budgets_view_;
  std::unique_ptr<k8s::Reflector<k8s::Node>> node_view_;
  std::unique_ptr<k8s::Reflector<k8s::VolumeAttachment>> volumes_view_;
  std::map<std::string, std::unique_ptr<k8s::Reflector<k8s::Pod>>> namespace_views_;
  Duration patience_{};  // the value when hurry_views() was called last
  TimePoint disconnected_since_ = TimePoint::max();
  bool told_disconnected_ = false;
  bool told_settling_ = false;
  bool node_list_forbidden_ = false;
  std::size_t late_pods_ = 0;            // number of late pods so far
  std::size_t late_pods_settled_ = 0;    // those that came before the last confirmed read of the Node
  bool doubts_node_ = false;             // such a read is pending; no eviction is sent meanwhile
  std::size_t node_news_ = 0;            // number of changes that the view of the Node has reported
  HeldLong pods_held_;                   // pods held for any reason
  HeldLong budgets_held_, guards_held_;  // pods held by a budget; by a guard
  TimePoint doubt_not_before_{};
  bool proves_end_ = false;
  std::optional<Unproved> unproved_;
  TimePoint verify_not_before_{};
  Backoff verify_backoff_{BackoffOptions{}};
};

}  // namespace haulout::drain
