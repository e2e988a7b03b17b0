// What Agent hides: shared by agent.cpp (the loop and what it goes by), writing.cpp, at_the_gates.cpp,
// waiting.cpp, draining.cpp, proof.cpp, after_reboot.cpp and shutdown.cpp. No public contract.
#pragma once

#include "agent/lifecycle/agent.hpp"
#include "agent/lifecycle/drain_status.hpp"
#include "agent/lifecycle/leaving.hpp"

namespace haulout::agent {

inline constexpr Duration request_timeout = std::chrono::seconds(30);
// How often things that send no event are asked again, at least.
inline constexpr Duration look_interval = std::chrono::seconds(10);

// Between tries of what must be done some time.
inline constexpr BackoffOptions patience{std::chrono::milliseconds(500), 2.0, std::chrono::seconds(30),
                                         BackoffOptions::Jitter::equal};

class Agent::Impl {
 public:
  Impl(AgentParts parts, AgentOptions options);
  boost::asio::awaitable<void> run();

 private:
  // agent.cpp
  boost::asio::awaitable<void> live();
  boost::asio::awaitable<void> keep_going();
  // Before a record of somebody else is read.
  boost::asio::awaitable<void> give_way();
  // Reads the Node until it can be read, and takes over its record.
  boost::asio::awaitable<void> load();
  void tell_unread(const Error& error);
  boost::asio::awaitable<void> establish();
  // After establish(): a boot that no event tells of is written down, and has served a request that was there before.
  boost::asio::awaitable<void> note_boot();
  boost::asio::awaitable<void> undo_cordon();
  boost::asio::awaitable<void> give_turn_back();
  // The ready file.
  void show_ready(bool ready);
  // The Node or its record is not what it was: interrupts the activity.
  void begin_anew();
  void warn(std::string reason, std::string message);
  boost::asio::awaitable<void> first_answer();
  boost::asio::awaitable<Event> activity();
  boost::asio::awaitable<void> follow_node();
  boost::asio::awaitable<void> follow_backend();
  // `list_asked`: when the list was asked for that tells of it.
  void see_node(const k8s::Node& node, std::optional<TimePoint> list_asked = std::nullopt);
  // News of our Node that may be overtaken by others.
  void learn(k8s::Node node);
  // The answer to a request that was sent when there had been `news_before` of them.
  void learn(k8s::Node node, std::uint64_t news_before);
  bool has_foreign_record() const;
  boost::asio::awaitable<void> wait(TimePoint until);
  bool wanted() const;
  std::string new_run() const;
  bool rebooted() const { return record_.boot_id != boot_id_; }
  // The boot id that we read is not this machine's, or not yet the kubelet's; nothing: all is well. Then it is looked
  // at again at `until`, which is brought forward to that moment.
  std::optional<Status> foreign_boot(TimePoint& until) const;

  // writing.cpp
  boost::asio::awaitable<void> commit(Event event);
  // Makes the Node show record and status; false: somebody else has written a record meanwhile, which counts.
  boost::asio::awaitable<bool> write(bool request_served = false);
  boost::asio::awaitable<void> show(std::string reason, std::string message);
  // For a child: as show(), by one of them at a time, which then shows what was wanted last. Nothing that ends a state
  // may wait for a Node that cannot be written.
  boost::asio::awaitable<void> show_beside(std::string reason, std::string message);
  // The Node cannot be written; it can again.
  void tell_unwritten(const Error& error);
  void tell_written();
  // Condition HauloutMaintenance; nothing waits for it.
  boost::asio::awaitable<void> show_condition();
  Task<> write_condition();
  // What could not be written is tried again, by a child.
  boost::asio::awaitable<void> retry_condition();
  // A child: while the node is in maintenance its condition says now and then that its agent lives.
  boost::asio::awaitable<void> be_heard();
  // A child: puts back what somebody else has taken from the Node or changed there, ever more seldom.
  boost::asio::awaitable<void> keep_shown();
  std::optional<std::string> what_was_taken() const;
  // The record as it stands on the Node, or is to: one that cannot be read stays as it is.
  std::string encoded() const { return unreadable_.empty() ? encode_record(record_) : unreadable_; }

  // at_the_gates.cpp
  boost::asio::awaitable<GateAnswer> ask_gates(GateQuestion::When when);
  // What others may change about the question that gates and turns are asked: labels of the Node, which say where it
  // belongs, annotations and cordons of people, and the need.
  using Words = std::map<std::string, std::string>;
  struct Asked {
    Words words{};
    Pending pending{};
    bool operator==(const Asked&) const = default;
  };
  Asked asked_now() const;
  // Until there is news of the gates, or the question is another one than the one that was `asked`. What this agent
  // itself writes to its Node, and what the kubelet reports there, changes nothing.
  boost::asio::awaitable<void> wait_at_gates(Asked asked, TimePoint until);
  boost::asio::awaitable<void> until_asked_anew(Asked asked, TimePoint until);
  boost::asio::awaitable<void> follow_gates();
  // Whether a closed gate gives up what is under way. An error: nobody knows.
  Task<bool> given_up();
  // Interrupts the activity when one does.
  boost::asio::awaitable<void> follow_pauses();
  boost::asio::awaitable<void> give_up_when_paused();

  // hooks.cpp
  enum class Hooks { passed, failed, interrupted };
  // Until every hook of the point has passed (at once where there is none), one has failed (cause_ says which), or
  // something else was decided meanwhile.
  boost::asio::awaitable<Hooks> pass_hooks(HookPoint point);
  // What failed; empty: nothing that stops the update.
  boost::asio::awaitable<std::string> ask_others(HookPoint point);
  boost::asio::awaitable<std::string> run_programs(HookPoint point);
  boost::asio::awaitable<Event> retry_hooks();
  bool interrupted();

  // load_balancers.cpp
  boost::asio::awaitable<void> leave_load_balancers();
  boost::asio::awaitable<void> return_to_load_balancers();

  // waiting.cpp
  boost::asio::awaitable<Event> wait_for_answer();
  boost::asio::awaitable<Event> wait_for_need();
  boost::asio::awaitable<Event> wait_for_gates();
  // The one that runs. Whoever cannot tell could not tell afterwards, either, whether the update took place.
  Task<> learn_version();
  boost::asio::awaitable<Event> wait_for_turn();
  boost::asio::awaitable<std::optional<Event>> ask_for_turn(Backoff& backoff, Asked asked);
  boost::asio::awaitable<void> stay_in_line();
  boost::asio::awaitable<void> until_line_moves(Words before, TimePoint until);
  boost::asio::awaitable<void> follow_turn();

  // draining.cpp
  boost::asio::awaitable<Event> drain();
  boost::asio::awaitable<void> watched_drain(TaskGroup& group);
  boost::asio::awaitable<void> put_update_in_place();
  boost::asio::awaitable<void> update_in_place();
  boost::asio::awaitable<void> run_drain();
  // Until somebody knows whether it is ours; where it is not, that is decided.
  boost::asio::awaitable<void> confirm_turn();
  boost::asio::awaitable<void> turn_confirmed();
  // Ends the activity at once: nothing is evicted any more, and the node is not ready.
  void decide(Event event);
  std::optional<Event> drain_interrupted();
  bool learn_leaked();
  Event uncordoned_by_somebody();
  Findings findings() const;
  boost::asio::awaitable<TimePoint> show_drain(TimePoint shown_last);

  // proof.cpp
  // Proves by most-recent reads that nothing stands against the reboot: nothing, or what does. An error: nobody knows
  // of all, and of what is known nothing does.
  Task<std::optional<Event>> prove();
  // Its questions.
  Task<std::optional<Event>> doubt_turn();
  Task<std::optional<Event>> doubt_cordon();
  Task<std::optional<Event>> doubt_gates();
  Task<std::optional<Event>> doubt_emptiness();
  bool must_leave(const k8s::Pod& pod);
  // True when its controller has made pods on this cordoned node twice. Adds the controller to the record.
  bool comes_back(const k8s::Pod& pod);
  boost::asio::awaitable<Event> stay_ready();
  // Somebody else has rebooted the machine since it was ready, and its boot id is the same. Sets cause_.
  boost::asio::awaitable<bool> booted_unnoticed();
  boost::asio::awaitable<void> watched_ready(TaskGroup& group);
  boost::asio::awaitable<void> follow_pods();

  // after_reboot.cpp
  boost::asio::awaitable<Event> reboot();
  // Who wants the machine to stay up; empty: nobody, as far as anybody can tell.
  boost::asio::awaitable<std::string> reboot_blocked_by();
  // Nothing: `asked` of the record says whether it was, and `problem` what became of it where it was not.
  boost::asio::awaitable<std::optional<Event>> ask_for_reboot(std::string method, std::string& problem);
  // Nothing: it is asked for, or was refused.
  boost::asio::awaitable<std::optional<Event>> ask_host(std::string method, TimePoint deadline, std::string& problem);
  // Whether one more request may be one reboot too many. Sets cause_.
  boost::asio::awaitable<bool> braked();
  // What shows that the machine has gone down and come up although its boot id is the same; empty: nothing until then.
  boost::asio::awaitable<std::string> until_down(TimePoint deadline);
  boost::asio::awaitable<BootMarks> boot_marks();
  // The boot id that is read now, where it is another one than the record's.
  std::optional<std::string> later_boot() const;
  // The time of one way to reboot begins.
  TimePoint reboot_time();
  boost::asio::awaitable<Event> verify();
  struct Finding {
    bool well = false;
    bool hopeless = false;  // no use to wait for the deadline
    std::string reason{}, message{};
  };
  boost::asio::awaitable<Finding> look_at_node();
  boost::asio::awaitable<Event> soak();
  boost::asio::awaitable<Event> stay_degraded();

  // shutdown.cpp
  void delay_shutdowns();
  boost::asio::awaitable<void> follow_shutdown();
  // Somebody shuts the machine down.
  bool going_down() const { return parts_.shutdown && parts_.shutdown->shutdown_at(); }
  // Until somebody does, and pods can still leave before. A shutdown for which nothing is left to do goes on.
  boost::asio::awaitable<void> until_shutdown();
  // Has the pods leave for as long as the shutdown waits; returns when it was called off.
  boost::asio::awaitable<void> leave();
  boost::asio::awaitable<void> leave_by(TaskGroup& group, TimePoint limit);
  boost::asio::awaitable<void> say_and_leave(TimePoint limit);
  boost::asio::awaitable<drain::Report> drain_for_shutdown(TimePoint limit);
  // Until it is known whether somebody shuts the machine down, or nobody can tell.
  boost::asio::awaitable<void> shutdown_is_known();
  // A machine that goes down takes no pods again: whoever comes after its boot sees to that.
  boost::asio::awaitable<void> stays_up();
  // After the boot that followed: until the kubelet has reported it.
  boost::asio::awaitable<void> kubelet_is_back();

  TimePoint now() const { return clock_.now(); }
  WallTime wall() const { return clock_.wall_now(); }
  TimePoint within(Duration limit) const { return now() + limit; }
  // A moment of wall time as a deadline, never further away than `at_most`: the clock may have jumped.
  TimePoint at(WallTime when, Duration at_most) const;

  AgentParts parts_;
  AgentOptions options_;
  k8s::Client& client_;
  Clock& clock_;
  Rng& rng_;

  Record record_;
  Status status_;
  std::string written_;     // the record as the Node has it
  std::string sent_;        // and as it was sent last: the answer may have been lost
  std::string unreadable_;  // what stands there instead of one
  k8s::Node node_;
  std::uint64_t node_news_ = 0;
  TimePoint node_learned_{};  // when the last news came
  std::string boot_id_;
  std::optional<bool> requested_at_start_;  // a reboot; what is asked for later, no boot of before has served
  Pending pending_;
  bool answered_ = false;  // the back end, since we started
  std::string slot_;       // of the last turn that was taken
  std::string booted_;
  std::string cause_, cause_message_;  // of the next degradation
  bool reload_ = false;
  bool foreign_ = false;  // because the record is not ours
  Backoff rival_backoff_;
  TimePoint gave_way_{};    // last
  unsigned rivals_ = 0;     // foreign records in a row
  bool unwritten_ = false;  // it was told that the Node cannot be written
  // Since when the kubelet, which is Ready, has reported another boot id than ours.
  std::optional<TimePoint> foreign_boot_since_;

  std::unique_ptr<Notifier> changed_;
  std::unique_ptr<Notifier> gates_news_;            // of the gates and of the Node, for follow_pauses()
  bool turns_moved_ = false, gates_moved_ = false;  // since they were asked
  std::unique_ptr<Notifier> node_moved_;            // for keep_shown()
  std::unique_ptr<Notifier> condition_news_;
  std::optional<Error> condition_trouble_;  // why the condition does not stand as it should
  std::unique_ptr<Notifier> shutdown_news_;
  bool leaving_ = false;  // before somebody else's shutdown
  // Of one activity.
  std::optional<Event> decided_;
  bool confirmed_ = false;  // the turn, to this drain
  bool placed_ = false;     // the update, for the next boot
  DrainStatus drain_status_;
  std::unique_ptr<drain::Drain> drain_;
  std::function<void()> stop_drain_;  // while it runs
  bool showing_ = false;              // show_beside() does
  std::optional<std::pair<std::string, std::string>> to_show_;
  bool cordoned_ = false;                                       // the drain's cordon has been acknowledged
  bool cordon_seen_ = false;                                    // and our view has caught up with it
  std::optional<std::pair<std::string, std::string>> held_up_;  // by what, before the first eviction: reason, message
  std::set<std::string> left_alone_;                            // UIDs of pods that stay, whatever is told of them
  WallTime takes_no_pods_since_{};                              // by the server's clock, as far as was seen
  // Of one attempt: pods that came when the node was cordoned and empty. UIDs by their controller, as Record::pinned
  // names it.
  std::map<std::string, std::set<std::string>> returned_;
};

}  // namespace haulout::agent
