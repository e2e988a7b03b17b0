#include "agent/report/reasons.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <array>

#include "drain/reasons.hpp"

namespace haulout::agent {

namespace {

using enum Concern;

constexpr std::string_view gates = "Gates: the update may not begin now";
constexpr std::string_view turns = "Slots";
constexpr std::string_view system = "The operating system and the API server";
constexpr std::string_view drain = "The drain";
constexpr std::string_view pods = "Pods that a drain waits for";
constexpr std::string_view left = "Pods that stay on the node";
constexpr std::string_view finds = "Further diagnoses of a drain";
constexpr std::string_view hooks = "Hooks";
constexpr std::string_view boot = "The reboot and the time after it";

constexpr std::array table{
    Reason{reason::outside_window, gates, waiting, "No maintenance window is open.",
           "Wait; the message says when the next window opens. Set windows with `--window` and `--blackout`."},
    Reason{reason::window_too_short, gates, waiting,
           "A window is open, but it closes before an update of this node would end. The estimate comes from its last "
           "updates.",
           "Wait. If the message says that no window is long enough, configure a longer one with `--window`."},
    Reason{reason::paused, gates, waiting,
           "A person paused this node, its pool or the cluster; the message says who and why.",
           "End the pause with `haulout resume`, or wait until it ends by itself."},
    Reason{reason::cordoned_by_person, gates, waiting,
           "A person has cordoned this node, with kubectl, `haulout cordon` or `haulout drain`; the message says who "
           "and since when. The agent leaves the node alone.",
           "Run `kubectl uncordon NODE` after the work on it. `--cordoned-nodes update` updates such nodes, too."},
    Reason{reason::pause_unknown, gates, trouble,
           "The agent cannot read whether updates are paused, so it treats the node as paused. If it has no right to "
           "read the ConfigMap, it ignores pauses of pools and of the cluster, and says so.",
           "See the error in the message: the agent must be able to read the ConfigMap `haulout` in its namespace."},
    Reason{reason::blocked_by_pod, gates, waiting, "A pod on this node matches `--blocking-pod-selector`.",
           "Wait until the pod has ended; the message names it."},
    Reason{reason::blocking_pods_unknown, gates, trouble,
           "The agent cannot read whether a pod matches `--blocking-pod-selector`.",
           "See the API server's error in the message. The agent tries again."},
    Reason{reason::blocked_by_alert, gates, waiting, "An alert that `--prometheus-query` returns blocks the node.",
           "Resolve the alert that the message names, or silence it."},
    Reason{reason::prometheus_query_refused, gates, trouble, "Prometheus rejects `--prometheus-query`.",
           "Correct the query; the message has the error of Prometheus."},
    Reason{reason::prometheus_unavailable, gates, trouble,
           "Prometheus does not answer, so the agent does not know whether an alert fires.",
           "Make Prometheus reachable, or allow updates without its answer: `--prometheus-fail-mode open`."},
    Reason{reason::fleet_unknown, gates, trouble, "The agent cannot read the state of the other nodes of the pool.",
           "See the API server's error in the message. The agent tries again."},
    Reason{reason::update_failed_elsewhere, gates, trouble,
           "Another node of the pool has been degraded since it rebooted for the same update that this node needs.",
           "Repair that node first; the message names it."},
    Reason{reason::reboot_loop, gates, trouble,
           "The node was already rebooted for this reason, but the system asks again: another reboot changes nothing.",
           "See on the node why the update does not take effect; `haulout request-reboot NODE` tries once more."},
    Reason{reason::too_many_reboots, gates, trouble,
           "The node was already rebooted as often within 24 hours as `--max-reboots-per-day` allows.",
           "Find out why it asks for so many reboots, or wait until the oldest of them is a day old."},
    Reason{reason::backing_off, gates, waiting,
           "The last attempt failed. The agent waits (`--backoff`) before the next one.",
           "See the cause of the last attempt in the message, which also says when the next one begins."},
    Reason{reason::cannot_reboot, gates, trouble,
           "The machine would refuse a reboot, or a program holds a block inhibitor; the message has the error. The "
           "agent starts no drain in this state. A node that is already drained stays drained, and is rebooted when "
           "the inhibitor is released.",
           "Check rights and mounts: D-Bus policy, polkit, AppArmor or SELinux; `haulout agent --check` tests them. "
           "For an inhibitor, wait, or end the program that holds it (`systemd-inhibit --list`)."},

    Reason{
        reason::waiting_for_slot, turns, waiting,
        "Other nodes of the pool hold all slots, or are unavailable for another reason, or `--max-unavailable` allows "
        "no node; the message says which.",
        "Wait. If a node in the message is degraded, repair that node. If `--max-unavailable` is 0, raise it."},
    Reason{reason::slots_unavailable, turns, trouble,
           "The agent cannot find out whether a slot is free; the message says why.",
           "Restore access to the API server or FleetLock server, or the right to use Leases in the namespace."},
    Reason{reason::cannot_release, turns, trouble,
           "The update of the node has ended, but the agent could not release its slot yet.",
           "See the error in the message. The agent tries again until it succeeds."},

    Reason{reason::backend_unknown, system, trouble,
           "The agent does not know whether a reboot is needed or which version runs, because the operating system's "
           "update tool gives no answer. An unknown answer never leads to a reboot.",
           "Provide what the message says is missing; `haulout agent --check` asks again and shows the answer."},
    Reason{reason::api_unavailable, system, trouble,
           "The API server does not answer, so the agent cannot verify anything.",
           "Nothing on this node; the agent continues by itself when the server answers."},
    Reason{reason::node_missing, system, trouble, "The API server answers, but has no Node of this name.",
           "Restart the kubelet, which registers the Node again. If the machine was retired, stop its agent."},
    Reason{
        reason::node_not_written, system, trouble,
        "The API server answers, but refuses what the agent writes to its Node, so the node stays in its state.",
        "See the server's error in the message. Usually a right is missing, an admission webhook denies the write, the "
        "annotations are too large, or the Node is newer than the agent's pod. `haulout agent --check` tests it."},
    Reason{reason::second_agent, system, trouble,
           "Another agent also writes the record of this Node: a DaemonSet and a systemd unit, or two DaemonSets.",
           "Stop one of them. Until then each gives way to the other, and updates take longer."},
    Reason{reason::record_unreadable, system, trouble,
           "The agent cannot read the annotation haulout.dev/record, which holds what it must remember after a crash.",
           "Check the node, then remove the annotation: `kubectl annotate node NAME haulout.dev/record-`."},
    Reason{reason::ready_file_failed, system, trouble, "The agent cannot write or remove the file /run/haulout/ready.",
           "Give the agent write access to the directory /run/haulout of the host."},

    Reason{reason::evicting, drain, progress,
           "The drain evicts the pods and waits until they are deleted; the message says how many are.", "Nothing."},
    Reason{reason::detaching_volumes, drain, waiting,
           "The pods are deleted, but volumes that they used are still attached; a reboot now could damage them.",
           "Wait; the message says what the volume waits for. A volume that stays attached becomes VolumeStuck."},
    Reason{reason::volume_stuck, drain, trouble,
           "The pods are deleted, but a volume that they used is still attached, for longer than `--volume-limit`.",
           "Check that the controller of its CSI driver and the kubelet of the node run; the message names the volume "
           "and its error. The drain continues by itself when the volume is detached."},
    Reason{reason::reattaching_volumes, drain, progress,
           "The pods are deleted and their volumes are detached. The drain gives another node time to attach them "
           "(`--reattach-limit`).",
           "Nothing. After that time the drain warns about volumes that no node has attached, and continues."},
    Reason{reason::uncordoned, drain, waiting,
           "The node was made schedulable, but not by its agent, while it was being drained or was ready.",
           "Nothing; the agent tries again later. To keep the agent away from the node, run `haulout pause NODE`."},
    Reason{reason::applying_update, drain, progress,
           "The operating system's update tool installs the new version for the next boot, before any eviction; with "
           "`--update=before-drain` also before the node asks for a slot.",
           "Nothing."},
    Reason{reason::apply_failed, drain, trouble, "The new version could not be installed, so no pod was evicted.",
           "See the update tool's error in the message. The agent tries again later."},
    Reason{reason::updating, drain, progress, "The node is drained, and its updates are being installed (`--update`).",
           "Nothing. On Debian and Ubuntu the log is in `journalctl -u haulout-update` and in /var/log/apt."},
    Reason{reason::update_blocked, drain, waiting,
           "The node is drained, but another program installs packages, so its package updates cannot be installed "
           "now. The message names the program.",
           "Wait until that program has ended. Switch off unattended-upgrades if `--update` is on. After "
           "`--update-limit` the agent gives the attempt up."},
    Reason{reason::update_failed, drain, trouble,
           "The updates were not installed. The agent has uncordoned the node, and tries again later; after "
           "`--update-attempts` failures in a row the node is degraded.",
           "See the error of the package manager or of the update tool in the message, and on the node `journalctl -u "
           "haulout-update`; with apt also /var/log/apt/term.log. After a repair by hand, or with `haulout "
           "request-reboot NODE`, the agent goes on."},
    Reason{reason::drain_blocked, drain, trouble,
           "The last drain did not end before `--drain-deadline`, or ended at a stuck volume (`--stuck-volume fail`).",
           "Resolve what the message names."},
    Reason{reason::drain_failed, drain, trouble, "The last drain failed, or policy refused it.",
           "See the message for the pods or the request that failed."},
    Reason{reason::waiting_for_load_balancers, drain, progress,
           "The node is cordoned and excluded from external load balancers. They have `--lb-drain-wait` to stop "
           "sending traffic to it; then the evictions begin.",
           "Nothing."},
    Reason{reason::cannot_exclude, drain, trouble,
           "The node could not be excluded from external load balancers yet, so no pod is evicted.",
           "See the error in the message. The agent tries again until it succeeds."},
    Reason{reason::cannot_restore, drain, trouble, "The node could not be given back to external load balancers yet.",
           "See the error in the message. The agent tries again until it succeeds."},
    Reason{reason::cannot_uncordon, drain, trouble, "The agent could not remove its own cordon yet.",
           "Nothing; the agent tries again until it succeeds. `kubectl uncordon NODE` does no harm."},

    Reason{reason::waiting_for_hook, hooks, progress,
           "A hook is running, or a hook by annotation has not been answered; the message says which.",
           "Nothing. If it takes too long, check what the hook does."},
    Reason{reason::hook_failed, hooks, trouble, "A hook failed or took too long.",
           "See the message for the error. If it stops the update, the agent runs executables again by itself."},
    Reason{reason::hook_skipped, hooks, trouble,
           "The agent did not run a file in the hooks directory, because its name, owner or permissions are wrong.",
           "Correct what the message names."},

    Reason{reason::blocked_by_budget, pods, waiting, "A PodDisruptionBudget allows no disruption of the pod now.",
           "Wait, add a replica, or change the budget; if it can never allow a disruption, see BudgetNeverAllows. The "
           "drain still requests evictions from time to time, because an admission webhook may act on them."},
    Reason{reason::overlapping_budgets, pods, trouble,
           "More than one PodDisruptionBudget selects the pod, and the API server then refuses every eviction.",
           "Change the selectors of the budgets until only one selects the pod."},
    Reason{reason::admission_denied, pods, trouble, "An admission webhook or policy denies the eviction.",
           "See the error in the message. Some webhooks deny evictions until their application is ready. If the denial "
           "stays, ask the owner of the webhook or policy."},
    Reason{reason::terminating, pods, progress, "The pod is terminating.", "Nothing."},
    Reason{reason::namespace_terminating, pods, progress, "The pod's namespace is being deleted, and the pod with it.",
           "Nothing, unless the namespace itself is stuck."},
    Reason{reason::throttled, pods, progress,
           "The API server, or the way to it, is overloaded or unreachable. The drain sends requests more slowly.",
           "Nothing."},
    Reason{reason::server_error, pods, progress,
           "The eviction failed with a temporary error. The drain sends it again.",
           "If the reason stays, see the server's error in the message."},
    Reason{reason::awaiting_watch, pods, progress,
           "The API server answered that the pod was deleted or replaced. The drain waits for the watch event.",
           "Nothing."},
    Reason{reason::forbidden, pods, trouble, "The API server does not allow the agent to evict the pod.",
           "Grant it `create` on `pods/eviction`; the shipped RBAC does."},
    Reason{reason::rejected, pods, trouble,
           "The server rejects the eviction with an error that a retry does not resolve.",
           "See the server's error in the message."},
    Reason{reason::pod_stuck_terminating, pods, trouble, "The pod still exists a minute after its grace period ended.",
           "See the finalizers in the message, the Events of the pod and the log of the kubelet. The usual causes are "
           "a preStop hook, a process that does not end, or a volume that cannot be unmounted."},
    Reason{reason::pod_pinned, pods, trouble, "A controller creates the pod on this cordoned node again and again.",
           "Let the pod stay (`--pinned leave`, or `--leave-pods` with its labels), scale its controller down, or "
           "remove the toleration, nodeName or scheduler that places it on this node."},
    Reason{
        reason::blocked_by_controller_budget, pods, waiting,
        "As many pods of its controller as `--max-unavailable-per-controller` allows are without a Ready replacement.",
        "Wait until a replacement is Ready; the message has the numbers. Repair one that never becomes Ready."},
    Reason{reason::awaiting_replacement, pods, waiting,
           "The first pod of its controller was evicted, and its replacement is not scheduled yet (`--canary`).",
           "Wait. The drain continues when the replacement is scheduled, or when none is expected any more."},
    Reason{reason::replacement_unschedulable, pods, trouble,
           "A replacement for an evicted pod of its controller cannot be scheduled. With `--canary` no further pod of "
           "the controller is evicted; with only `--max-unavailable-per-controller` the replacement counts as missing.",
           "See the scheduler's message in the message: add capacity, or change what the pod requests."},
    Reason{reason::controller_unknown, pods, progress,
           "The drain is looking up the pod's controller, or the other pods of that controller.",
           "Nothing. If the reason stays, check the rights in docs/guards.md."},
    Reason{reason::volumes_in_turn, pods, progress,
           "Pods with volumes of one CSI driver are evicted one at a time (`--serialize-volumes`); this one waits.",
           "Nothing; the message says which pod or volume comes first. A pod that itself waits does not block others, "
           "nor does a volume past `--volume-limit`."},
    Reason{
        reason::single_replica, pods, trouble,
        "The pod is the only one of its controller, and `--single-replica block` forbids its eviction.",
        "Scale the controller up until the drain has ended, or annotate it with `haulout.dev/single-replica: allow`."},
    Reason{reason::do_not_disrupt, pods, waiting, "An annotation of the pod protects it from eviction.",
           "Wait until the pod has finished, or remove the annotation. To ignore all such annotations, set "
           "`--ignore-do-not-disrupt` for the agent, or run `haulout drain` without `--respect-do-not-disrupt`."},
    Reason{reason::empty_dir, pods, trouble,
           "The pod has an emptyDir volume, and `--emptydir refuse` protects its data.",
           "If the data is no longer needed, delete the pod yourself."},
    Reason{reason::unmanaged, pods, trouble,
           "The pod has no controller that would create it again, and `--unmanaged` forbids its eviction.",
           "Delete the pod yourself, or give it a controller."},
    Reason{reason::orphaned_daemon_set_pod, pods, trouble, "The pod's DaemonSet does not exist any more.",
           "Delete the pod."},

    Reason{reason::daemon_set_managed, left, progress, "Its DaemonSet would create it on this node again at once.",
           "Nothing."},
    Reason{reason::mirror_pod, left, progress, "A static pod is deleted only with its manifest on the node.",
           "Nothing."},
    Reason{reason::finished, left, progress, "The pod has succeeded or failed, and none of its containers run.",
           "Nothing."},
    Reason{reason::not_selected, left, progress, "The pod does not match the pod selector.", "Nothing."},
    Reason{reason::left_by_labels, left, progress,
           "The pod matches `--leave-pods`, so it stays and goes down with the machine.", "Nothing."},
    Reason{reason::terminating_too_long, left, progress,
           "The pod has been terminating for longer than `--skip-wait-for-delete-timeout`.", "Nothing."},

    Reason{reason::budget_never_allows, finds, trouble, "A PodDisruptionBudget can never allow a disruption.",
           "Change the budget; the Event names the field. Or delete its pods yourself if their owner agrees. If a "
           "controller such as a VirtualMachineInstance moves the pods by itself, only wait."},
    Reason{reason::budget_of_single_pod, finds, trouble,
           "A PodDisruptionBudget protects a single pod, which therefore can never be evicted.",
           "Scale its controller up for as long as the drain takes, or delete the pod yourself if its owner agrees. If "
           "a controller such as a VirtualMachineInstance moves the pod by itself, only wait."},
    Reason{reason::budget_needs_all_pods, finds, trouble, "A PodDisruptionBudget needs as many healthy pods as exist.",
           "Add a replica, or lower the number that the budget needs; the Event has the numbers."},
    Reason{reason::budget_misconfigured, finds, trouble,
           "A PodDisruptionBudget counts no pods, or allows no disruption although all its pods are healthy.",
           "The Event says which of the two. Pods without a controller count only for an integer `minAvailable`."},
    Reason{reason::budget_sync_failed, finds, trouble,
           "The disruption controller cannot compute a PodDisruptionBudget.",
           "See its error in the Event: often no scale subresource, which an integer `minAvailable` does not need."},
    Reason{reason::budget_not_observed, finds, trouble,
           "The disruption controller has not processed a PodDisruptionBudget, or keeps evicted pods in its status.",
           "Check that kube-controller-manager runs."},
    Reason{reason::budget_unhealthy_deadlock, finds, trouble,
           "Unhealthy pods cannot be evicted, because their PodDisruptionBudget has too few healthy pods.",
           "Set the budget's `unhealthyPodEvictionPolicy` to `AlwaysAllow`, or repair the pods; the Event names them."},
    Reason{reason::budget_awaits_replacement, finds, waiting,
           "A PodDisruptionBudget waits for pods that are not Ready, usually replacements on other nodes.",
           "Wait until they are Ready; the Event names them and says what they wait for."},
    Reason{
        reason::budget_disruption_pending, finds, waiting,
        "A PodDisruptionBudget still counts a pod as disrupted: its eviction was accepted, but it is not terminating, "
        "or a new pod has its name.",
        "Wait. The entry expires within two minutes; the Event has the time."},
    Reason{reason::budget_map_too_big, finds, trouble,
           "Too many evictions under a PodDisruptionBudget wait for the disruption controller; no more are accepted.",
           "Check that kube-controller-manager runs and keeps up."},
    Reason{reason::webhook_denied, finds, trouble, "An admission webhook denies evictions.",
           "See the error in the Event. The webhook may allow the eviction later. If the denial stays, ask the owner "
           "of the webhook."},
    Reason{reason::webhook_down, finds, trouble,
           "The API server cannot call an admission webhook, and its `failurePolicy` denies the eviction then.",
           "Check that the pods behind its Service run. The Event names both, and says if such a pod was on this node. "
           "To have a webhook's pods evicted last, annotate them with `haulout.dev/drain-order`."},
    Reason{reason::namespace_stuck_terminating, finds, trouble,
           "A namespace has been terminating for more than five minutes; the server evicts no pods in it.",
           "The Event lists what is left in the namespace, if the agent may read it. Otherwise run `kubectl get "
           "namespace NAME -o yaml`."},
    Reason{reason::kubelet_not_ready, finds, trouble,
           "The kubelet does not report the node Ready. Without a kubelet no pod on the node is deleted.",
           "Start the kubelet again. If the machine is lost, delete the Node."},
    Reason{reason::local_volume, finds, trouble,
           "A pod that waits has a volume that exists only on this node: its replacement will stay Pending.",
           "Move the data first, or accept that the replacement is Pending for as long as the update takes."},
    Reason{reason::only_own_pod_left, finds, trouble, "Only the pod in which Haulout itself runs is left.",
           "Run Haulout as a DaemonSet pod, or from another node."},
    Reason{reason::clock_skew, finds, trouble,
           "The clock of the machine on which the agent or the command runs differs from the API server's by more than "
           "30 s: times in messages are wrong, and tokens and certificates may be rejected. The drain goes on.",
           "Set the clock: `timedatectl`, `chronyc tracking`."},
    Reason{reason::pod_finalizer, finds, trouble,
           "The containers of a pod have ended, but its finalizers keep it from being deleted.",
           "Have the controllers that set the finalizers remove them; the Event names the finalizers."},
    Reason{reason::volume_detach_error, finds, trouble, "A CSI driver cannot detach a volume from the node.",
           "See the driver's error in the Event, and the log of its controller. The driver tries again by itself."},
    Reason{
        reason::volumes_unreadable, finds, trouble,
        "Requests for volumes fail, but not for lack of a right (that is RightMissing). A drain that waits for volumes "
        "tries again, and does not end before it knows that they are detached.",
        "See the server's error in the Event."},
    Reason{
        reason::emptiness_unproved, finds, trouble,
        "The watch shows no pod left, but the API server does not confirm it: pods or Node cannot be read.",
        "See the server's error in the Event, and the right that is missing if there is one. The drain tries again."},
    Reason{reason::volume_attachment_leaked, finds, trouble,
           "A volume is attached to the node, but no pod of the node was seen to use it. According to the status of "
           "the Node neither the kubelet nor kube-controller-manager handles it. The drain does not wait for it.",
           "Find out what the volume is. If nothing needs it, delete the VolumeAttachment that the Event names."},
    Reason{reason::only_replica_evicted, finds, waiting, "The drain evicts the only pod of a controller.",
           "Nothing, if an outage is acceptable. Otherwise add a second replica for the duration of the drain."},
    Reason{reason::last_ready_pods, finds, waiting,
           "All Ready pods of a controller are on this node, and no budget prevents evicting them together.",
           "Create a PodDisruptionBudget for them, spread the pods, or set `--max-unavailable-per-controller`."},
    Reason{reason::replicas_unknown, finds, waiting,
           "The number of replicas of a controller could not be read. The drain assumes more than one.",
           "See the cause in the Event: often a right is missing. `--max-unavailable-per-controller` counts pods of a "
           "kind without replicas only if they are annotated with `haulout.dev/max-unavailable`."},
    Reason{reason::override_invalid, finds, trouble, "An annotation of a guard is invalid and ignored.",
           "Correct the annotation; the Event says how."},
    Reason{reason::right_missing, finds, trouble, "The agent lacks a right that it needs for this drain.",
           "Grant the right that the Event names; the shipped RBAC has it."},
    Reason{reason::node_gone, finds, trouble, "The Node was deleted or replaced during the drain.",
           "Nothing, if a person deleted the Node. Otherwise restart the kubelet, which registers it again."},
    Reason{reason::unmanaged_pod_evicted, finds, trouble,
           "The drain evicted a pod without a controller. Nothing creates it again.",
           "Create it again if it is needed. With `--unmanaged refuse` such a pod blocks the next drain instead."},

    Reason{reason::rebooting, boot, progress,
           "The agent requests the reboot, or the machine is already shutting down; the message says which.",
           "Nothing."},
    Reason{reason::shutting_down, boot, progress,
           "A person or program reboots or powers off the machine; the agent drains it while logind delays that.",
           "Nothing. `InhibitDelayMaxSec=` in logind.conf(5) sets the delay."},
    Reason{
        reason::shutdown_drained, boot, progress,
        "A person or program reboots or powers off the machine. While logind delayed that, the agent drained the node: "
        "all pods that must leave are deleted.",
        "Nothing; the agent removes its cordon when the machine is up again."},
    Reason{reason::shutdown_undrained, boot, trouble,
           "A person or program rebooted or powered off the machine, and logind did not wait for the drain.",
           "Reboot with `haulout request-reboot NODE` instead, or raise `InhibitDelayMaxSec=` in logind.conf(5)."},
    Reason{reason::cannot_delay_shutdown, boot, trouble,
           "logind gives no delay lock, so a reboot that the agent did not request does not wait for the drain.",
           "See logind's error in the message. Usually rights or a mount are missing, as for `CannotReboot`."},
    Reason{reason::rebooted_meanwhile, boot, trouble,
           "The machine went down or was rebooted while its node was drained, or before the agent requested the "
           "reboot, so it was not updated. The agent uncordons the node when it is well. If a reboot is still needed, "
           "a new attempt begins.",
           "Nothing if a person rebooted it. If it crashed, see its log (`journalctl -b -1`)."},
    Reason{reason::soaking, boot, progress,
           "The node is well after its reboot. The agent watches it for a while before the next node may begin.",
           "Nothing; `--soak` sets how long."},
    Reason{reason::reboot_failed, boot, trouble,
           "The agent requested the reboot with every configured method, and the machine did not go down.",
           "Reboot the machine, or have the agent try again: `haulout request-reboot NODE`."},
    Reason{reason::boot_id_unchanged, boot, trouble,
           "The machine was rebooted, but the agent reads the same boot id as before: it runs in a container that has "
           "the boot id of its host, or the machine was restarted without its kernel (`systemctl soft-reboot`). The "
           "agent cannot verify the node and requests no further reboot. The node stays cordoned and keeps its slot, "
           "so that no other node follows.",
           "Check that the node is well, then remove the record: `kubectl annotate node NAME haulout.dev/record-`. The "
           "agent "
           "then uncordons the node, releases its slot and starts anew. "
           "Haulout cannot manage machines whose boot id never changes: stop the agents there."},
    Reason{reason::boot_id_foreign, boot, trouble,
           "The agent reads another boot id than the kubelet reports: it runs on another machine than its node, or "
           "reads the boot id of a container's host. It would not notice a reboot, so it starts no update.",
           "See both ids in the message. Let the agent read the machine's own `/proc/sys/kernel/random/boot_id`; for "
           "the unit in a container set `ProtectProc=default`, `ProtectKernelTunables=no` and "
           "`ProtectControlGroups=no` (`systemctl edit "
           "haulout`). Then restart the agent."},
    Reason{reason::boot_not_complete, boot, progress, "The machine has booted, but its startup has not finished.",
           "If the reason stays, run `systemctl list-jobs` and `systemctl --failed` on the node."},
    Reason{reason::node_not_ready, boot, progress, "The kubelet does not report the node Ready for this boot.",
           "If the reason stays, see the kubelet's log on the node."},
    Reason{reason::version_unexpected, boot, trouble, "After the reboot another version runs than expected.",
           "Check the update tool on the node; the message has both versions."},
    Reason{reason::rolled_back, boot, trouble,
           "The old version runs again: the new one did not boot, or was rolled back. The agent does not try it again "
           "on this node. While the node is degraded it keeps its slot, which blocks other nodes that may need the "
           "same version.",
           "Find out why the new version did not boot. Then run `haulout request-reboot NODE`, which tries the version "
           "that is current by then. By itself only an idle node tries a newer version."},
};

}  // namespace

std::span<const Reason> reasons() {
  return table;
}

const Reason* find_reason(std::string_view name) {
  const auto found = std::find_if(table.begin(), table.end(), [&](const Reason& each) { return each.name == name; });
  return found == table.end() ? nullptr : &*found;
}

std::string_view to_string(Concern concern) {
  switch (concern) {
    case progress: return "progress";
    case waiting: return "waiting";
    case trouble: return "trouble";
  }
  return "";
}

Concern concern_of(std::string_view reason) {
  const Reason* known = find_reason(reason);
  return known ? known->concern : trouble;
}

namespace {

constexpr std::string_view head = R"(# Why a node waits

This page is made from the table of reasons in `agent/report/`; a test compares the two.

Whenever the agent of a node waits, it shows a reason. The reason is the same in all of these places:

| where | how to see it |
|---|---|
| labels `haulout.dev/state` and `haulout.dev/reason` | `kubectl get nodes -L haulout.dev/state,haulout.dev/reason` |
| annotation `haulout.dev/message` | the sentence that explains the reason, in `kubectl describe node NAME` |
| condition `HauloutMaintenance` | true from cordon to uncordon, in `kubectl describe node NAME` |
| Events on the Node | `kubectl describe node NAME`, `kubectl events --for node/NAME` |
| metric `haulout_reason_info` | see [metrics.md](metrics.md) |
| the agent's log | one line per change, with the fields `state` and `reason` |
| on bare metal | `systemctl status haulout` |

If there is no reason, nothing blocks the node. The Event for a state without a reason uses the name of the state
instead: `Unknown`, `Idle`, `Pending`, `Waiting`, `Draining`, `Ready`, `Rebooting`, `Verifying`, `Uncordoning`,
`Soaking`, `Degraded`. A reason marked ● may not end without a person: look at the node. Such reasons are Warnings among
the Events and in the log.

A diagnosis is a condition that keeps a drain from ending, or of which a person should know: the text says if the drain
goes on. Diagnoses use the reasons of this page, too. They appear in
the reports of `haulout drain` and `haulout explain`, as Events on the Node, and in the metric `haulout_diagnosis`.
)";

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '|') result += '\\';
    result += c;
  }
  return result;
}

}  // namespace

std::string reasons_page() {
  std::string page(head);
  std::string_view group;
  for (const Reason& reason : reasons()) {
    if (reason.group != group) {
      group = reason.group;
      page += fmt::format("\n## {}\n\n| reason | | what it means | what to do |\n|---|---|---|---|\n", group);
    }
    page += fmt::format("| `{}` | {} | {} | {} |\n", reason.name, reason.concern == Concern::trouble ? "●" : "",
                        escaped(reason.meaning), escaped(reason.remedy));
  }
  return page;
}

}  // namespace haulout::agent
