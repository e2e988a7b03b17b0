// The implementation of Agent, shared by the files of this folder: agent.cpp (the loop), writing.cpp, at_the_gates.cpp,
// hooks.cpp, load_balancers.cpp, waiting.cpp, draining.cpp, proof.cpp, after_reboot.cpp and shutdown.cpp. No public
// contract.
#pragma once

#include "agent/lifecycle/agent.hpp"
#include "agent/lifecycle/drain_status.hpp"
#include "agent/lifecycle/leaving.hpp"

namespace haulout::agent {

inline constexpr Duration request_timeout = std::chrono::seconds(30);
// The longest time between two queries of something that sends no event.
inline constexpr Duration look_interval = std::chrono::seconds(10);

// Backoff for steps that must succeed eventually.
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
  // Waits with backoff before the agent reads a record that it has not written.
  boost::asio::awaitable<void> give_way();
  // Reads the Node, with retries until it succeeds, and takes over its record.
  boost::asio::awaitable<void> load();
  void tell_unread(const Error& error);
  boost::asio::awaitable<void> establish();
  // Called after establish(). If the machine has booted and the state has no event for that, writes the new boot id.
  // Such a boot also serves a reboot request that was there before.
  boost::asio::awaitable<void> note_boot();
  boost::asio::awaitable<void> undo_cordon();
  boost::asio::awaitable<void> give_turn_back();
  // Creates or removes the ready file.
  void show_ready(bool ready);
  // Interrupts the activity, because the Node was deleted or replaced, or another client changed its record.
  void begin_anew();
  void warn(std::string reason, std::string message);
  boost::asio::awaitable<void> first_answer();
  boost::asio::awaitable<Event> activity();
  boost::asio::awaitable<void> follow_node();
  boost::asio::awaitable<void> follow_backend();
  // `list_asked`: when the list that has this Node was requested; nothing if it came by a watch event or as an answer.
  void see_node(const k8s::Node& node, std::optional<TimePoint> list_asked = std::nullopt);
  // Takes over a new state of the Node, unless the known state is newer.
  void learn(k8s::Node node);
  // Takes over the answer to a request. `news_before` is the value of `node_news_` when the request was sent.
  void learn(k8s::Node node, std::uint64_t news_before);
  bool has_foreign_record() const;
  boost::asio::awaitable<void> wait(TimePoint until);
  bool wanted() const;
  std::string new_run() const;
  bool rebooted() const { return record_.boot_id != boot_id_; }
  // Returns a status if the boot id that the agent reads is not that of this machine, or not yet that of the kubelet.
  // Otherwise returns nothing. Brings `until` forward to the time at which the status has to be evaluated again.
  std::optional<Status> foreign_boot(TimePoint& until) const;

  // writing.cpp
  boost::asio::awaitable<void> commit(Event event);
  // Makes the Node show the record and the status. Returns false if the Node was deleted or replaced, or if another
  // agent has written a record, which takes precedence.
  boost::asio::awaitable<bool> write(bool request_served = false);
  boost::asio::awaitable<void> show(std::string reason, std::string message);
  // Like show(), for a child of the task group. Only one call at a time writes; it ends with the values that were
  // passed last. The end of a state must not wait for a Node that cannot be written, so states call this in a child.
  boost::asio::awaitable<void> show_beside(std::string reason, std::string message);
  // Report that the Node cannot be written, and that it can be written again.
  void tell_unwritten(const Error& error);
  void tell_written();
  // Writes the condition HauloutMaintenance. The loop goes on even if that fails.
  boost::asio::awaitable<void> show_condition();
  Task<> write_condition();
  // A child that retries a failed write of the condition.
  boost::asio::awaitable<void> retry_condition();
  // A child that updates the heartbeat of the condition while the node is in maintenance.
  boost::asio::awaitable<void> be_heard();
  // A child that restores what another client has removed from the Node or changed there, with a growing backoff.
  boost::asio::awaitable<void> keep_shown();
  std::optional<std::string> what_was_taken() const;
  // The record as it is on the Node or will be there. A record that cannot be read stays as it is.
  std::string encoded() const { return unreadable_.empty() ? encode_record(record_) : unreadable_; }

  // at_the_gates.cpp
  boost::asio::awaitable<GateAnswer> ask_gates(GateQuestion::When when);
  // What other clients may change about the question for gates and slots: labels of the Node (which name its pool and
  // zone), annotations and cordons of people, and the need.
  using Words = std::map<std::string, std::string>;
  struct Asked {
    Words words{};
    Pending pending{};
    bool operator==(const Asked&) const = default;
  };
  Asked asked_now() const;
  // Returns when the gates have changed, when the question differs from `asked`, or at `until`. The agent's own writes
  // to its Node and the kubelet's reports do not end the wait.
  boost::asio::awaitable<void> wait_at_gates(Asked asked, TimePoint until);
  boost::asio::awaitable<void> until_asked_anew(Asked asked, TimePoint until);
  boost::asio::awaitable<void> follow_gates();
  // Returns true if a closed gate gives up the update that is under way. An error means that this is unknown.
  Task<bool> given_up();
  // Interrupts the activity when a gate gives it up.
  boost::asio::awaitable<void> follow_pauses();
  boost::asio::awaitable<void> give_up_when_paused();

  // hooks.cpp
  enum class Hooks { passed, failed, interrupted };
  // Returns when every hook of the point has passed (at once if there is none), when a hook has failed (`cause_` says
  // which), or when another event interrupts the state.
  boost::asio::awaitable<Hooks> pass_hooks(HookPoint point);
  // The next two return what failed, or an empty string if nothing stops the update.
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
  // Stores the running version in `booted_`. An update must not begin without it, because afterwards nothing could show
  // whether it took place.
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
  // Asks until it is known whether the node holds its slot. If it does not, decides Event::turn_lost.
  boost::asio::awaitable<void> confirm_turn();
  boost::asio::awaitable<void> turn_confirmed();
  // Ends the activity at once: the drain evicts nothing more, and the ready file is removed.
  void decide(Event event);
  std::optional<Event> drain_interrupted();
  bool learn_leaked();
  Event uncordoned_by_somebody();
  Findings findings() const;
  boost::asio::awaitable<TimePoint> show_drain(TimePoint shown_last);

  // proof.cpp
  // Proves by most-recent reads that nothing prevents the reboot. Returns nothing then, or the event that prevents it.
  // An error means that at least one question stays unanswered, and that no other answer prevents the reboot.
  Task<std::optional<Event>> prove();
  // The questions of prove().
  Task<std::optional<Event>> doubt_turn();
  Task<std::optional<Event>> doubt_cordon();
  Task<std::optional<Event>> doubt_gates();
  Task<std::optional<Event>> doubt_emptiness();
  bool must_leave(const k8s::Pod& pod);
  // Returns true if the pod's controller has created pods on this cordoned node twice. Adds the controller to the
  // record.
  bool comes_back(const k8s::Pod& pod);
  boost::asio::awaitable<Event> stay_ready();
  // Returns true if another program has rebooted the machine since it was ready, and the boot id has not changed. Sets
  // `cause_`.
  boost::asio::awaitable<bool> booted_unnoticed();
  boost::asio::awaitable<void> watched_ready(TaskGroup& group);
  boost::asio::awaitable<void> follow_pods();

  // after_reboot.cpp
  boost::asio::awaitable<Event> reboot();
  // Returns what blocks the reboot for now; empty if nothing does, or if the host cannot answer.
  boost::asio::awaitable<std::string> reboot_blocked_by();
  // Returns the event that prevents the request. Otherwise returns nothing: `asked` in the record says whether the
  // reboot was requested, and `problem` why a request failed.
  boost::asio::awaitable<std::optional<Event>> ask_for_reboot(std::string method, std::string& problem);
  // Returns nothing if the reboot was requested, or if the host refused it.
  boost::asio::awaitable<std::optional<Event>> ask_host(std::string method, TimePoint deadline, std::string& problem);
  // Returns true if another request may be one reboot too many. Sets `cause_`.
  boost::asio::awaitable<bool> braked();
  // Waits until `deadline` for the machine to go down. Returns the evidence that it has gone down and come up although
  // its boot id has not changed; empty if there is none.
  boost::asio::awaitable<std::string> until_down(TimePoint deadline);
  boost::asio::awaitable<BootMarks> boot_marks();
  // Returns the current boot id if it differs from the record's.
  std::optional<std::string> later_boot() const;
  // Starts the time limit of the current reboot method.
  TimePoint reboot_time();
  boost::asio::awaitable<Event> verify();
  struct Finding {
    bool well = false;
    bool hopeless = false;  // it is useless to wait for the deadline
    std::string reason{}, message{};
  };
  boost::asio::awaitable<Finding> look_at_node();
  boost::asio::awaitable<Event> soak();
  boost::asio::awaitable<Event> stay_degraded();

  // shutdown.cpp
  void delay_shutdowns();
  boost::asio::awaitable<void> follow_shutdown();
  // Returns true if another program shuts the machine down.
  bool going_down() const { return parts_.shutdown && parts_.shutdown->shutdown_at(); }
  // Returns when another program shuts the machine down and the pods can still be evicted before. If nothing is left to
  // do before a shutdown, lets it proceed.
  boost::asio::awaitable<void> until_shutdown();
  // Drains the node for as long as the shutdown waits. Returns after the shutdown was called off.
  boost::asio::awaitable<void> leave();
  boost::asio::awaitable<void> leave_by(TaskGroup& group, TimePoint limit);
  boost::asio::awaitable<void> say_and_leave(TimePoint limit);
  boost::asio::awaitable<drain::Report> drain_for_shutdown(TimePoint limit);
  // Returns when it is known whether a shutdown is under way, or when no answer can be had.
  boost::asio::awaitable<void> shutdown_is_known();
  // Waits while the machine shuts down, because a node that goes down must stay cordoned. The agent after its boot
  // takes the cordon back.
  boost::asio::awaitable<void> stays_up();
  // Waits until the kubelet has reported the current boot Ready.
  boost::asio::awaitable<void> kubelet_is_back();

  TimePoint now() const { return clock_.now(); }
  WallTime wall() const { return clock_.wall_now(); }
  TimePoint within(Duration limit) const { return now() + limit; }
  // Converts wall time to a deadline that is at most `at_most` away, because the wall clock may have jumped.
  TimePoint at(WallTime when, Duration at_most) const;

  AgentParts parts_;
  AgentOptions options_;
  k8s::Client& client_;
  Clock& clock_;
  Rng& rng_;

  Record record_;
  Status status_;
  std::string written_;     // the record on the Node
  std::string sent_;        // the record in the last request; its answer may have been lost
  std::string unreadable_;  // the text of a record that cannot be read; otherwise empty
  k8s::Node node_;
  std::uint64_t node_news_ = 0;
  TimePoint node_learned_{};  // when the last state of the Node arrived
  std::string boot_id_;
  // Whether a reboot was requested when this process started. A later request cannot have been served by an earlier
  // boot.
  std::optional<bool> requested_at_start_;
  Pending pending_;
  bool answered_ = false;  // the back end has answered since the process started
  std::string slot_;       // of the last slot that was taken
  std::string booted_;
  std::string cause_, cause_message_;  // of the next degradation or failed attempt
  bool reload_ = false;
  bool foreign_ = false;  // reload_ is set because the record is not the agent's own
  Backoff rival_backoff_;
  TimePoint gave_way_{};    // end of the last give_way()
  unsigned rivals_ = 0;     // number of foreign records in a row
  bool unwritten_ = false;  // it was reported that the Node cannot be written
  // Since when the kubelet has been Ready and has reported a boot id other than the agent's.
  std::optional<TimePoint> foreign_boot_since_;

  std::unique_ptr<Notifier> changed_;
  std::unique_ptr<Notifier> gates_news_;            // change of the gates or of the Node, for follow_pauses()
  bool turns_moved_ = false, gates_moved_ = false;  // since the last request
  std::unique_ptr<Notifier> node_moved_;            // for keep_shown()
  std::unique_ptr<Notifier> condition_news_;
  std::optional<Error> condition_trouble_;  // why the condition is not as it should be
  std::unique_ptr<Notifier> shutdown_news_;
  bool leaving_ = false;  // draining before a shutdown by another program
  // Of the current activity:
  std::optional<Event> decided_;
  bool confirmed_ = false;  // the slot is confirmed for this drain
  bool placed_ = false;     // the update is installed for the next boot
  DrainStatus drain_status_;
  std::unique_ptr<drain::Drain> drain_;
  std::function<void()> stop_drain_;  // set while the drain runs
  bool showing_ = false;              // show_beside() is writing
  std::optional<std::pair<std::string, std::string>> to_show_;
  bool cordoned_ = false;     // the server has accepted the drain's cordon
  bool cordon_seen_ = false;  // the agent's view of the Node has shown that cordon
  // What holds the drain up before the first eviction: reason and message.
  std::optional<std::pair<std::string, std::string>> held_up_;
  // UIDs of skipped pods. They stay on the node even if they change later.
  std::set<std::string> left_alone_;
  // Since when the node has been seen unschedulable, by the server's clock.
  WallTime takes_no_pods_since_{};
  // Of the current attempt: UIDs of the pods that were created on the node while it was cordoned and empty. The key is
  // the controller, as in `Record::pinned`.
  std::map<std::string, std::set<std::string>> returned_;
};

}  // namespace haulout::agent
