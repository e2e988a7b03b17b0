#include "agent/report/reasons.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <array>

#include "base/text.hpp"
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
    Reason{reason::outside_window, gates, waiting, "No maintenance window is open, or a blackout is in force.",
           "Wait; the message says when updates may begin again. Set these times with `--window` and `--blackout`."},
    Reason{reason::window_too_short, gates, waiting,
           "The window closes, or a blackout begins, before an update of this node would end. The estimate comes from "
           "its last updates; without any it is 30 minutes.",
           "Wait. If the message says that no time within two years is long enough, configure longer windows or "
           "shorter blackouts."},
    Reason{reason::paused, gates, waiting,
           "This node, its pool or the cluster is paused; the message has the reason and the end, if they were given. "
           "A pause that cannot be read counts as one without end; the message then says what is wrong with it.",
           "End the pause with `haulout resume`. A pause with an end also ends by itself."},
    Reason{reason::cordoned_by_person, gates, waiting,
           "A person or another program has cordoned this node, for example with kubectl, `haulout cordon` or `haulout "
           "drain`. The message says who, or with which tool, and since when, as far as that is known. The agent "
           "leaves the node alone.",
           "Run `kubectl uncordon NODE` after the work on it. `--cordoned-nodes update` updates such nodes, too."},
    Reason{reason::pause_unknown, gates, trouble,
           "The agent cannot read whether updates are paused, so it begins no update, no installation and no reboot; a "
           "running drain continues. If the agent has had no right to read the ConfigMap since its start, it ignores "
           "pauses of pools and of the cluster instead, and its log has a warning.",
           "See the error in the message: the agent must be able to read the ConfigMap `haulout` in its namespace."},
    Reason{reason::blocked_by_pod, gates, waiting, "A pod on this node matches `--blocking-pod-selector`.",
           "Wait until the pod has ended; the message names it."},
    Reason{reason::blocking_pods_unknown, gates, trouble,
           "The agent cannot read whether a pod matches `--blocking-pod-selector`.",
           "See the error in the message. The agent tries again."},
    Reason{reason::blocked_by_alert, gates, waiting,
           "`--prometheus-query` returns an alert or another series. Each one blocks the node, whatever it is about.",
           "Resolve the alert that the message names, or exclude it in `--prometheus-query`. A silence in Alertmanager "
           "does not help: Prometheus still reports the alert as firing."},
    Reason{reason::prometheus_query_refused, gates, trouble,
           "Prometheus rejects `--prometheus-query` (HTTP 400), or the query does not return an instant vector.",
           "See the error in the message, and correct the query. If the error is not about the query, correct "
           "`--prometheus-url`."},
    Reason{reason::prometheus_unavailable, gates, trouble,
           "Prometheus gives no usable answer, so the agent does not know whether an alert fires.",
           "See the error in the message. Make Prometheus reachable, or correct its options. `--prometheus-fail-mode "
           "open` allows updates without its answer."},
    Reason{reason::fleet_unknown, gates, trouble, "The agent cannot read the state of the other nodes of the pool.",
           "See the error in the message. The agent tries again."},
    Reason{reason::version_failed, gates, trouble,
           "The version that waits has failed on another node of the pool: it was not verified, was rolled back, or "
           "could not be installed. Agents with `--update` install no such version on further nodes.",
           "Wait for another version, or repair the node that the message names: when the version runs well there, the "
           "others go on. To try the version all the same, remove the annotation `haulout.dev/record` of that node; "
           "the message has the command."},
    Reason{reason::version_pinned, gates, waiting,
           "The update that waits has another version than `--pin` allows, or none.",
           "Wait until the update tool offers that version, or change `--pin`."},
    Reason{reason::update_failed_elsewhere, gates, trouble,
           "Another node of the pool has been degraded since it rebooted for the same update that this node needs.",
           "Repair that node first; the message names it."},
    Reason{reason::reboot_loop, gates, trouble,
           "The node was already rebooted for this update, but its operating system still requires a reboot: another "
           "reboot would change nothing.",
           "See on the node why the update does not take effect. `haulout request-reboot NODE` reboots it once more "
           "all the same."},
    Reason{reason::too_many_reboots, gates, trouble,
           "The node was already rebooted, or requested to reboot, as often within 24 hours as `--max-reboots-per-day` "
           "allows.",
           "Find out why the node needs so many reboots. Or wait: the agent goes on when enough of these reboots are "
           "more than 24 hours ago. `haulout request-reboot NODE` reboots it once more all the same."},
    Reason{reason::backing_off, gates, waiting,
           "The last attempt failed or was cancelled. The agent waits (`--backoff`) before the next one.",
           "See the cause of the last attempt in the message, which also says when the next one begins."},
    Reason{reason::randomized_delay, gates, waiting,
           "The cluster has fifty nodes or more. So the agent waits for a random time, 15 ms for each node and 30 s at "
           "most, "
           "before it asks whether it may begin. Otherwise all agents would send these requests in the same second.",
           "Wait. A reboot that a person requests (`haulout request-reboot`) does not wait."},
    Reason{reason::cannot_reboot, gates, trouble,
           "The machine would refuse a reboot, or a program holds a block inhibitor; the message has the error. The "
           "agent starts no drain in this state. A node that is already drained stays drained, and is rebooted when "
           "the inhibitor is released.",
           "Check rights and mounts: D-Bus policy, polkit, AppArmor or SELinux; `haulout agent --check` tests them. "
           "For an inhibitor, wait, or end the program that holds it (`systemd-inhibit --list`)."},

    Reason{reason::waiting_for_slot, turns, waiting,
           "No slot is free: other nodes of the pool hold them or are unavailable, `--max-unavailable` allows no node, "
           "or the FleetLock server gives none. The message says which. During an update, with `--ramp` or "
           "`--halt-after`: the version changed after the node had taken its slot, so it waits for a slot for the new "
           "one.",
           "Wait. If a node in the message is degraded or NotReady, repair it; if it is cordoned, uncordon it when the "
           "work on it has ended. If the message names a Lease or a label, do what it says. If `--max-unavailable` is "
           "0, raise it. If the FleetLock server does not know the group, add it there, or correct `--pool`."},
    Reason{
        reason::waiting_for_wave, turns, waiting,
        "The present wave of the roll-out (`--ramp`) is not over, so no further node may be updated to this version: "
        "not all nodes of the wave have come back well. The message has the numbers, and names nodes that are "
        "degraded, that have failed with this version, or that are not Ready although their update should be over.",
        "Wait. If the message names a node that is degraded or not Ready, or has failed, repair it and request its "
        "reboot (`haulout request-reboot NODE`): when it has come back well, the roll-out goes on. To go on without "
        "it, remove its record once it is healthy (`kubectl annotate node NODE haulout.dev/record-`). If its machine "
        "is lost, no agent is left that could release its slot: delete the Node."},
    Reason{
        reason::waiting_for_order, turns, waiting,
        "A slot is free, but by `--roll-out-order` other nodes of the pool that wait go before this one. The message "
        "names them. A node before this one that does not take the free slot within ten minutes is passed over.",
        "Wait. If a node in the message stays in the state `waiting` although a slot is free, look at its agent."},
    Reason{
        reason::roll_out_halted, turns, waiting,
        "As many nodes as `--halt-after` allows have failed with the version, so no further node is updated to it. A "
        "node has failed if its update to the version did not end well and it has not run well with it since, or if it "
        "has been degraded, or not Ready, since that update. The message names them.",
        "Repair the nodes, and request their reboots (`haulout request-reboot NODE`): they may try again while the "
        "roll-out is halted. When fewer than `--halt-after` nodes have failed, it goes on. Or withdraw the version; a "
        "newer one has a roll-out of its own, but the failed nodes keep their slots until they are repaired. To go on "
        "without a node, remove its record once it is healthy (`kubectl annotate "
        "node NODE haulout.dev/record-`); if its machine is lost, delete the Node."},
    Reason{reason::ramp_without_version, turns, trouble,
           "`--ramp` or `--halt-after` is set, but the back end names no version for the update of this node, or one "
           "that other nodes do "
           "not share (transactional-update). So its roll-out cannot be "
           "told from others: it has no waves, and nothing halts it; only `--max-unavailable` limits it.",
           "Remove the option, or use a back end with versions."},
    Reason{reason::slots_unavailable, turns, trouble,
           "The agent cannot find out whether a slot is free, or whether the node still has its slot; the message says "
           "why.",
           "Resolve the cause in the message. Usually the API server or FleetLock server does not answer, the right to "
           "use Leases is missing, or the Node has no value in the label of `--pool-label` or `--zone-label`."},
    Reason{reason::cannot_release, turns, trouble,
           "The node no longer needs its slot, but the agent could not release the slot yet.",
           "See the error in the message. The agent tries again until it succeeds. If the message names `--slots`, "
           "restart the agent with the value that it names."},

    Reason{reason::backend_unknown, system, trouble,
           "The agent does not know whether a reboot is needed, whether updates wait, or which version runs, because "
           "the operating system (usually its update tool) gives no usable answer. Until it does, the agent begins no "
           "update and verifies no version. A requested update begins if the version is known.",
           "Provide what the message says is missing; `haulout agent --check` asks again and shows the answer."},
    Reason{reason::api_unavailable, system, trouble,
           "The agent cannot read or verify what it must know. Usually the API server, or the FleetLock server, does "
           "not answer or refuses the request.",
           "See the error in the message. Check that the server runs, that this node reaches it, and that the "
           "credential has the right. The agent tries again until it succeeds."},
    Reason{reason::node_missing, system, trouble, "The API server answers, but has no Node of this name.",
           "Restart the kubelet, which registers the Node again. If the machine was retired, stop the agent on it. If "
           "the name is wrong, correct `--node-name`."},
    Reason{
        reason::node_not_written, system, trouble,
        "The API server refuses what the agent writes to its Node, or the agent cannot send it for lack of a "
        "credential. So the node stays in its state.",
        "See the error in the message. Usually a right is missing, an admission webhook denies the write, the "
        "annotations are too large, or others change the Node without pause. If the Node was deleted and created "
        "again, delete the agent's pod. If the credential is the cause, renew it. `haulout agent --check` tests it."},
    Reason{reason::second_agent, system, trouble,
           "Another agent also writes the record of this Node, for example a systemd unit beside a DaemonSet.",
           "Stop one of the two agents. Until then each waits for the other, and updates take longer."},
    Reason{reason::record_unreadable, system, trouble,
           "The agent cannot read the annotation haulout.dev/record, which holds what it must remember after a crash. "
           "The node stays degraded.",
           "If a newer Haulout has written it, upgrade this agent. Otherwise, if the node is healthy, remove the "
           "annotation: `kubectl annotate node NAME haulout.dev/record-`. The agent then uncordons the node if it had "
           "cordoned it, releases its slot and starts anew."},
    Reason{reason::ready_file_failed, system, trouble, "The agent cannot write or remove the file /run/haulout/ready.",
           "See the error in the message. Usually the agent lacks write access to the directory /run/haulout of the "
           "host."},

    Reason{reason::evicting, drain, progress,
           "The drain evicts the pods and waits until they are deleted; the message says how many are.", "Nothing."},
    Reason{reason::detaching_volumes, drain, waiting,
           "The pods are deleted, but volumes are still attached that they used, or may have used; a reboot now could "
           "damage them.",
           "Wait; the message says what the volume waits for. If a volume stays attached for longer than "
           "`--volume-limit`, the reason becomes VolumeStuck."},
    Reason{reason::volume_stuck, drain, trouble,
           "The pods that used a volume are deleted, but the volume has stayed attached for longer than "
           "`--volume-limit`. A drain with `--wait-volumes` waits for it, or ends if `--stuck-volume fail` is set.",
           "Check that the controller of its CSI driver and the kubelet of the node run; the message names the volume "
           "and its error. A drain that waits continues by itself when the volume is detached."},
    Reason{reason::reattaching_volumes, drain, progress,
           "The pods are deleted and their volumes are detached. The drain gives another node time to attach them "
           "(`--reattach-limit`).",
           "Nothing. After that time the drain warns about volumes that no node has attached, and continues."},
    Reason{reason::uncordoned, drain, waiting,
           "The node was uncordoned, but not by Haulout, while it was being drained or updated. No further pod is "
           "evicted, and the agent does not reboot the node.",
           "An agent makes another attempt later; to prevent that, run `haulout pause NODE`. `haulout drain` goes on "
           "when the node is cordoned again (`kubectl cordon NODE`)."},
    Reason{reason::applying_update, drain, progress,
           "The operating system's update tool writes the new version for the next boot. It does so before any "
           "eviction; with `--update=before-drain` even before the node asks for a slot.",
           "Nothing."},
    Reason{
        reason::apply_failed, drain, trouble, "The new version could not be installed, so no pod was evicted.",
        "See the update tool's error in the message. The agent tries again later. After `--update-attempts` failures "
        "in a row the node is degraded, until another version is offered: repair it, and run "
        "`haulout request-reboot NODE`."},
    Reason{reason::updating, drain, progress,
           "The node is drained, and its updates are being installed (`--update`). As a warning during the drain: the "
           "updates could not be downloaded in advance, so the installation downloads them.",
           "Nothing. On Debian and Ubuntu the log is in `journalctl -u haulout-update` and in /var/log/apt."},
    Reason{
        reason::update_blocked, drain, waiting,
        "The node is drained, but its updates cannot be installed now: another program installs packages, or the "
        "agent cannot find out whether one does. The message says which.",
        "Wait until the program in the message has ended, or resolve the error in the message. With `--update "
        "after-drain`, switch unattended-upgrades off. If the node is degraded, install the updates and reboot it if "
        "they need that, or run `haulout request-reboot NODE`."},
    Reason{
        reason::update_failed, drain, trouble,
        "The installation of the updates did not succeed. The agent removes its cordon, if it has cordoned the node, "
        "and tries again later; after `--update-attempts` failures in a row the node is degraded.",
        "The message has the error of the package manager or of the update tool; `journalctl -u haulout-update` on "
        "the node has its output (apt: also /var/log/apt/term.log). If the node is degraded, install the updates and "
        "reboot it if they need that, or run `haulout request-reboot NODE`."},
    Reason{reason::services_not_restarted, drain, trouble,
           "A warning after an installation: services still use files that it has replaced, or do not run after their "
           "restart, or the agent could not check them; the message says which. needrestart does not restart every "
           "service, and the agent restarts none if the node is not drained any more.",
           "Restart the services that the message names, or resolve its error; or reboot the node with `haulout "
           "request-reboot NODE`. `needrestart -b` on the node lists those that use replaced files, `systemctl "
           "--failed` those that do not run. With `--update-services reboot` the agent reboots for both."},
    Reason{reason::drain_blocked, drain, trouble,
           "The last drain did not end before `--drain-deadline`, or ended at a stuck volume (`--stuck-volume fail`).",
           "The message names what the drain waited for, for example the first pod and its reason, or a volume. "
           "Resolve that, or raise `--drain-deadline`. `haulout explain NODE` shows what blocks the other pods. The "
           "agent removes its cordon, and makes another attempt later."},
    Reason{reason::drain_failed, drain, trouble,
           "The last drain failed, or was refused because of a pod that may not be evicted, or for which no capacity "
           "on other nodes is known.",
           "See the message for the pods or the request that failed. The agent makes another attempt later."},
    Reason{reason::waiting_for_load_balancers, drain, progress,
           "The node is cordoned and excluded from external load balancers. They have the time of `--lb-drain-wait` to "
           "stop sending traffic to it; then the evictions begin.",
           "Nothing."},
    Reason{reason::cannot_exclude, drain, trouble,
           "The node could not be excluded from external load balancers yet, so no pod is evicted.",
           "See the error in the message. The agent tries again until it succeeds."},
    Reason{reason::cannot_restore, drain, trouble, "The node could not be added to external load balancers again yet.",
           "See the error in the message. The agent tries again until it succeeds."},
    Reason{reason::cannot_uncordon, drain, trouble,
           "The agent could not remove its own cordon yet. The node keeps its slot.",
           "See the error in the message; the agent tries again. If the error stays (a missing right, a webhook), "
           "repair its cause, or run `haulout uncordon NODE`."},

    Reason{
        reason::waiting_for_hook, hooks, progress,
        "A hook program runs, or a hook by annotation has not been answered; the message says which and since when. A "
        "hook has failed (HookFailed) if it takes longer than `--hook-limit`, or than the limit in its annotation.",
        "Wait. If it takes long, check the hook program, or the program that must answer the annotation "
        "(docs/hooks.md). To go on without a hook by annotation, remove the annotation."},
    Reason{reason::hook_failed, hooks, trouble,
           "A hook failed, took longer than its limit, or could not be run. For example, its annotation has a wrong "
           "name, or users other than root could change the program.",
           "See the error in the message. A hook program that failed after the boot or before the release of the slot "
           "is run again every ten minutes; one that failed earlier, with the next attempt. With `--hook-failure "
           "continue` the update goes on without it."},
    Reason{reason::hook_skipped, hooks, trouble,
           "The agent did not run a file in the hooks directory: its name is not allowed for a hook, or it is not an "
           "executable file.",
           "Rename the file that the message names, or make it executable (`chmod +x`)."},

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
           "Wait. After five minutes the drain reports NamespaceStuckTerminating and, if it may read the namespace, "
           "what is left in it."},
    Reason{reason::throttled, pods, progress,
           "The API server is overloaded, cannot be reached, or does not accept the credential now. The drain sends "
           "requests more slowly.",
           "Wait. If the reason stays, see the error in the message, and check the API server, the network to it and "
           "the credential."},
    Reason{reason::server_error, pods, progress,
           "The eviction failed with a temporary error. The drain sends it again.",
           "If the reason stays, see the error in the message."},
    Reason{reason::awaiting_watch, pods, progress,
           "The API server answered that the pod was deleted or replaced, but the watch still shows it. The drain "
           "waits for the watch, and sends the eviction again after 30 seconds at the latest.",
           "Nothing."},
    Reason{reason::forbidden, pods, trouble,
           "The API server does not allow the eviction of the pod, because the credential lacks a right.",
           "Grant the verb `create` on `pods/eviction` (with `--disable-eviction`: `delete` on `pods`); the shipped "
           "RBAC has it for agents."},
    Reason{reason::rejected, pods, trouble,
           "The API server rejects the eviction request itself, not because of a right, webhook or budget. The drain "
           "sends it again about every minute, and fails when only such pods are left.",
           "See the server's error in the message. It is about the request, not the pod, so a change of the pod rarely "
           "helps; you may delete the pod yourself."},
    Reason{reason::pod_stuck_terminating, pods, trouble, "The pod still exists a minute after its grace period ended.",
           "See the message, the Events of the pod and the log of the kubelet. The usual causes are a finalizer, a "
           "preStop hook, a process that does not end, or a volume that cannot be unmounted."},
    Reason{reason::pod_pinned, pods, trouble, "A controller creates the pod on this cordoned node again and again.",
           "Let the pod stay (`--pinned leave`, or `--leave-pods` with its labels), scale its controller down, or "
           "remove the toleration, nodeName or scheduler that places it on this node."},
    Reason{reason::blocked_by_controller_budget, pods, waiting,
           "Pods of its controller are without a Ready replacement, as many as `--max-unavailable-per-controller` or "
           "the annotation `haulout.dev/max-unavailable` allows.",
           "Wait until a replacement is Ready; the message has the numbers. Repair a replacement that never becomes "
           "Ready."},
    Reason{
        reason::awaiting_replacement, pods, waiting,
        "With `--canary`: the first pod of its controller was evicted, and its replacement is not scheduled yet. With "
        "`--surge`: the replacement of this pod is not Ready yet.",
        "Wait. With `--canary` the drain continues when the replacement is scheduled, or after the time of "
        "`--canary`; if the scheduler finds no node for it, the reason becomes ReplacementUnschedulable. With "
        "`--surge` the reason becomes SurgeFailed after `--surge-limit`."},
    Reason{
        reason::surge_failed, pods, trouble,
        "With `--surge`: no replacement of the pod became Ready in time, or the pod could not be changed. The pod is "
        "in service, and the drain tries it again later.",
        "See the message. Usually no node has room, a quota is used up, or an image cannot be pulled. To evict the "
        "pod without a replacement, annotate it `haulout.dev/surge=false`."},
    Reason{
        reason::eviction_requested, pods, progress,
        "With `--eviction-requests`: an EvictionRequest was created for the pod, and one of its responders works, or "
        "has time to answer.",
        "Wait; the message names the responder and what it says. If none answers within `--eviction-request-limit`, "
        "the pod is evicted as without a request."},
    Reason{reason::replacement_unschedulable, pods, trouble,
           "A replacement for an evicted pod of its controller cannot be scheduled. With `--canary` no further pod of "
           "the controller is evicted; with only `--max-unavailable-per-controller` the replacement counts as missing.",
           "See in the message why the scheduler finds no node. Add capacity, or change what the pod requests."},
    Reason{reason::controller_unknown, pods, progress,
           "The drain is looking up the pod's controller, or the other pods of that controller.",
           "Wait. If the reason stays, grant the rights that docs/guards.md lists."},
    Reason{
        reason::volumes_in_turn, pods, progress,
        "Pods with volumes of one CSI driver are evicted one at a time (`--serialize-volumes`); this one waits.",
        "Wait; the message says which pod or volume comes first, or that the volumes of the pod are still being read. "
        "A pod whose eviction must wait does not block the others, nor does a volume that is still attached "
        "`--volume-limit` after its last pod was deleted."},
    Reason{
        reason::single_replica, pods, trouble,
        "The pod is the only one of its controller, and `--single-replica block`, or the annotation "
        "`haulout.dev/single-replica: block`, forbids its eviction.",
        "Scale the controller up until the drain has ended, or annotate it with `haulout.dev/single-replica: allow`."},
    Reason{reason::do_not_disrupt, pods, waiting,
           "An annotation of the pod (`karpenter.sh/do-not-disrupt`, or `safe-to-evict` of the cluster autoscaler) "
           "protects it from eviction.",
           "Wait until the pod or its protection has ended, or remove the annotation. To ignore all such annotations, "
           "set `--ignore-do-not-disrupt` for the agent, or run `haulout drain` without `--respect-do-not-disrupt`."},
    Reason{reason::waiting_for_completion, pods, waiting,
           "A `--pod-rule` with `wait-completed`, or the label `cluster.x-k8s.io/drain: wait-completed`, makes the "
           "drain wait until the pod has finished.",
           "Wait until the pod's work ends, or until the time in the message. To evict the pod now, evict it yourself, "
           "or change the rule or the label."},
    Reason{
        reason::waiting_for_other_pods, pods, waiting,
        "The pod is evicted only after other pods have left: a member of a gang, a pod of a rule with `last`, a pod of "
        "a DaemonSet (`--evict-daemonset-pods`), or the pod in which Haulout runs. The message names one of the pods "
        "that come first.",
        "Wait. If that pod has to wait itself, its own reason says for what."},
    Reason{
        reason::waiting_for_gang, pods, waiting,
        "The pod is a member of a gang, which runs only as a whole, and `--gangs wait` makes the drain wait until the "
        "pod has finished. The message names the gang.",
        "Wait until the run ends, or stop it yourself. For a limit, use `--pod-rule` with "
        "`wait-completed=DURATION`; to evict such pods, set `--gangs evict`."},
    Reason{
        reason::gang_member, pods, trouble,
        "The pod is a member of a gang, which runs only as a whole, and `--gangs refuse` forbids its eviction. Beside "
        "`evict` in `haulout explain`, this reason only says that the eviction stops the gang.",
        "Wait until the run ends, or stop it yourself; or set `--gangs` to `wait` or `evict`."},
    Reason{reason::empty_dir, pods, trouble,
           "The pod has an emptyDir volume, and its data may not be deleted: `--emptydir refuse`, or `haulout drain` "
           "without `--delete-emptydir-data`.",
           "If the data is no longer needed, delete the pod yourself, or change that option. Beside `evict` in "
           "`haulout explain`, this reason only says that the eviction deletes the data."},
    Reason{reason::unmanaged, pods, trouble,
           "The pod has no controller that would create it again, and may not be evicted: `--unmanaged refuse`, or "
           "`haulout drain` without `--force`. With `--unmanaged skip` it stays on the node.",
           "Delete the pod yourself, give it a controller, or change that option."},
    Reason{reason::orphaned_daemon_set_pod, pods, trouble, "The pod's DaemonSet does not exist any more.",
           "Delete the pod, or run `haulout drain` with `--force`."},

    Reason{reason::daemon_set_managed, left, progress,
           "The pod's DaemonSet would create it on this node again at once.",
           "Nothing. `haulout drain` leaves it there only with `--ignore-daemonsets`. If it needs its grace period "
           "before the reboot, use `--evict-daemonset-pods`; then the one that comes in its place stays."},
    Reason{reason::mirror_pod, left, progress,
           "The pod is static: it is deleted only when its manifest on the node is removed.", "Nothing."},
    Reason{reason::finished, left, progress, "The pod has succeeded or failed, and none of its containers run.",
           "Nothing."},
    Reason{reason::not_selected, left, progress, "The pod does not match `--pod-selector`.", "Nothing."},
    Reason{reason::left_by_labels, left, progress,
           "The pod matches `--leave-pods`, so it stays and goes down with the machine.", "Nothing."},
    Reason{
        reason::left_by_rule, left, progress,
        "A `--pod-rule` with `skip`, or the label `cluster.x-k8s.io/drain: skip` (`--cluster-api-labels all`), keeps "
        "the pod on the node.",
        "Nothing. To have the pod evicted, change the rule or the label."},
    Reason{reason::terminating_too_long, left, progress,
           "The pod has been terminating for longer than `--skip-wait-for-delete-timeout`, so the drain does not wait "
           "for it.",
           "Nothing."},

    Reason{reason::budget_never_allows, finds, trouble, "A PodDisruptionBudget can never allow a disruption.",
           "Change the budget; the Event names the field. Or delete its pods yourself if their owner agrees; nothing "
           "creates a pod without a controller again. If a controller such as a VirtualMachineInstance moves the pods "
           "by itself, only wait."},
    Reason{reason::budget_of_single_pod, finds, trouble,
           "A PodDisruptionBudget protects a single pod, which therefore can never be evicted.",
           "Scale its controller up for as long as the drain takes, or delete the pod yourself if its owner agrees. "
           "If the pod has no controller, nothing creates it again: change its budget instead. If a controller such as "
           "a VirtualMachineInstance moves the pod by itself, only wait."},
    Reason{reason::budget_needs_all_pods, finds, trouble, "A PodDisruptionBudget needs as many healthy pods as exist.",
           "Add replicas, or lower the number that the budget needs; the Event has the numbers. If a controller such "
           "as a VirtualMachineInstance moves the pods by itself, only wait."},
    Reason{reason::budget_misconfigured, finds, trouble,
           "A PodDisruptionBudget counts no pods, or allows no disruption although all its pods are healthy.",
           "See in the Event which of the two it is. If it counts no pods, and they have no controller, use an integer "
           "`minAvailable` or give them one; if they have a controller, check that it has replicas. If it counts pods, "
           "check that kube-controller-manager runs."},
    Reason{reason::budget_sync_failed, finds, trouble,
           "The disruption controller cannot compute a PodDisruptionBudget.",
           "See the controller's error in the Event. Often the controller of the pods has no scale subresource; an "
           "integer `minAvailable` does not need one."},
    Reason{reason::budget_not_observed, finds, trouble,
           "The disruption controller has not processed a PodDisruptionBudget, or its status still lists pods that "
           "were evicted minutes ago.",
           "Check that kube-controller-manager runs."},
    Reason{reason::budget_unhealthy_deadlock, finds, trouble,
           "Unhealthy pods cannot be evicted, because their PodDisruptionBudget has too few healthy pods.",
           "Set the budget's `unhealthyPodEvictionPolicy` to `AlwaysAllow`, or repair the pods; the Event names them."},
    Reason{reason::budget_awaits_replacement, finds, waiting,
           "A PodDisruptionBudget waits for pods that are not Ready, are terminating or do not exist yet, usually "
           "replacements on other nodes.",
           "Wait until enough of its pods are Ready; the Event has the numbers, and names the pods if the drain may "
           "list them. Repair pods that do not become Ready."},
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
           "Check that what serves the webhook runs, usually the pods behind a Service. The Event names the Service, "
           "and a pod of it that is or was on this node, if they are known. To have such pods evicted last, annotate "
           "them with `haulout.dev/drain-order`."},
    Reason{reason::namespace_stuck_terminating, finds, trouble,
           "A namespace has been terminating for more than five minutes; the server evicts no pods in it.",
           "See in the Event what is left in the namespace, or run `kubectl get namespace NAME -o yaml`. Delete that, "
           "or repair the controller that must delete it."},
    Reason{
        reason::kubelet_not_ready, finds, trouble,
        "The kubelet does not report the node Ready. While no kubelet runs, no pod on the node is deleted.",
        "See the conditions of the Node, and the kubelet's log on the node. If the machine is lost, delete the Node."},
    Reason{reason::local_volume, finds, trouble,
           "A pod that must leave has a volume that exists only on this node. A replacement of the pod stays Pending "
           "until the node is uncordoned.",
           "Move the data first, or accept that a replacement is Pending for as long as the update takes."},
    Reason{reason::only_own_pod_left, finds, trouble,
           "Of the pods that must leave, only the one in which Haulout itself runs is left.",
           "Run Haulout as a DaemonSet pod, or from another node."},
    Reason{reason::clock_skew, finds, trouble,
           "The clock of the machine on which the agent or the command runs differs from the API server's by more than "
           "30 s: times in messages are wrong, and tokens and certificates may be rejected. The drain goes on.",
           "Correct the clock that is wrong: that machine's or the API server's. On each of the two, `timedatectl` or "
           "`chronyc tracking` shows whether the clock is synchronized."},
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
    Reason{reason::emptiness_unproved, finds, trouble,
           "The watch shows no pod left, but the API server does not confirm it: it does not answer, or pods or Node "
           "cannot be read.",
           "See the Event: it has the server's error, and the right that is missing, if there is one. The drain tries "
           "again."},
    Reason{reason::volume_attachment_leaked, finds, trouble,
           "A volume is attached to the node, but no pod of the node was seen to use it. The status of the Node lists "
           "it neither in `volumesInUse` nor in `volumesAttached`. The drain does not wait for it.",
           "Find out what the volume is. If nothing needs it, delete the VolumeAttachment that the Event names."},
    Reason{reason::only_replica_evicted, finds, waiting, "The drain evicts the only pod of a controller.",
           "Nothing, if an outage is acceptable. Otherwise scale the controller to two replicas before you drain the "
           "node, or let the drain replace the pod first (`--surge`)."},
    Reason{reason::surge_impossible, finds, waiting,
           "With `--surge`: the pod cannot be replaced in advance, so it is evicted as without `--surge`.",
           "Nothing, if a short gap is acceptable. Otherwise see the message for what would have to change."},
    Reason{reason::eviction_request_failed, finds, waiting,
           "With `--eviction-requests`: the responders of the pod have not answered or have failed, or the request "
           "could not be created. The pod is evicted as without a request.",
           "Nothing, if an ordinary eviction is acceptable. Otherwise see the message, and repair the responder."},
    Reason{reason::eviction_requests_unserved, finds, waiting,
           "With `--eviction-requests`: the API server does not serve EvictionRequests, so pods that have responders "
           "are evicted as without a request.",
           "Turn on the feature gate EvictionRequestAPI and the API lifecycle.k8s.io/v1alpha1 of the API server "
           "(`--runtime-config`), or turn off `--eviction-requests`."},
    Reason{reason::gang_broken, finds, waiting,
           "The drain evicts members of a gang, which runs only as a whole: a PodGroup, a JobSet, or a group of a "
           "LeaderWorkerSet. That stops the whole group, also its pods on other nodes.",
           "Nothing, if the run can stop and start again. Otherwise have the drain wait until its pods have finished "
           "(`--gangs wait`), or not drain the node (`--gangs refuse`)."},
    Reason{reason::last_ready_pods, finds, waiting,
           "All Ready pods of a controller are on this node, and no budget prevents evicting them together.",
           "Create a PodDisruptionBudget for them, spread the pods, or set `--max-unavailable-per-controller`."},
    Reason{reason::replicas_unknown, finds, waiting,
           "The number of replicas of a controller could not be read. The drain assumes more than one.",
           "See the cause in the Event: often a right is missing. If the controller's kind has no scale subresource, "
           "`--max-unavailable-per-controller` limits only the evictions of pods that have the annotation "
           "`haulout.dev/max-unavailable`."},
    Reason{reason::override_invalid, finds, trouble,
           "The annotation `haulout.dev/single-replica` or `haulout.dev/max-unavailable` has an invalid value. The "
           "drain goes on as if it were not there.",
           "Correct the value of the annotation; the Event names it and says what is wrong."},
    Reason{reason::right_missing, finds, trouble,
           "The credential of the agent or of the command lacks a right that the drain needs or would use.",
           "Grant the right that the Event, or the output of the command, names. The shipped RBAC has it; for guards, "
           "the component `guards` has it."},
    Reason{reason::node_gone, finds, trouble, "The Node was deleted or replaced during the drain.",
           "Nothing, if the Node was deleted on purpose. If it was replaced, drain the new Node. Otherwise restart the "
           "kubelet, which registers it again."},
    Reason{reason::unmanaged_pod_evicted, finds, trouble,
           "The drain evicted a pod without a controller. Nothing creates it again.",
           "Create it again if it is needed. With `--unmanaged refuse` such a pod blocks the next drain instead."},

    Reason{reason::rebooting, boot, progress,
           "The agent requests the reboot, or the machine is already shutting down; the message says which.",
           "Nothing."},
    Reason{reason::shutting_down, boot, progress,
           "A person or program reboots or powers off the machine. The agent uses logind's delay to drain the node, or "
           "keeps the node cordoned until the machine has booted again.",
           "Nothing. To give the pods more time, raise `InhibitDelayMaxSec=` in logind.conf(5), or drain the node "
           "before the shutdown. If the kubelet has a `shutdownGracePeriod`, only the drain helps."},
    Reason{
        reason::shutdown_drained, boot, progress,
        "A person or program reboots or powers off the machine. While logind delayed that, the agent drained the node: "
        "all pods that must leave are deleted.",
        "Nothing; the agent removes its cordon when the machine is up again."},
    Reason{reason::shutdown_undrained, boot, trouble,
           "A person or program reboots or powers off the machine, and its drain did not end in time, failed, or was "
           "refused; or it was drained, but its updates were not installed yet. The message says which.",
           "Next time, reboot with `haulout request-reboot NODE`, or run `haulout drain NODE` before you switch the "
           "machine off. Or raise `InhibitDelayMaxSec=` in logind.conf(5)."},
    Reason{
        reason::cannot_delay_shutdown, boot, trouble,
        "logind gives the agent no delay lock, so a reboot that the agent did not request does not wait for the drain.",
        "See logind's error in the message. Usually rights or a mount are missing, as for `CannotReboot`."},
    Reason{reason::rebooted_meanwhile, boot, trouble,
           "The machine went down, or was rebooted by others, before the agent requested its reboot: while the node "
           "was being drained, was ready, or while its updates were being installed. The agent verifies the node and "
           "uncordons it, or finishes the installation first. If an update is still needed, another attempt begins.",
           "Nothing if a person rebooted it. If another program did, switch off its reboots. If it crashed, see the "
           "log of that boot (`journalctl -b -1`)."},
    Reason{reason::soaking, boot, progress,
           "The node is well after its update. The agent watches it for a while before it releases the slot.",
           "Nothing; `--soak` sets how long."},
    Reason{reason::reboot_failed, boot, trouble,
           "The agent requested the reboot, and the machine did not go down within `--reboot-limit`, or refused. The "
           "agent tried each configured method, unless the need for the reboot ended meanwhile.",
           "See the error in the message. Reboot the machine, or have the agent try again: `haulout request-reboot "
           "NODE`."},
    Reason{reason::boot_id_unchanged, boot, trouble,
           "The machine was rebooted, but the agent reads the same boot id as before: it runs in a container that has "
           "the boot id of its host, or the machine was restarted without its kernel (`systemctl soft-reboot`). The "
           "agent cannot verify the node and requests no further reboot. The node stays cordoned and keeps its slot, "
           "so that no other node follows.",
           "Check that the node is well, then remove the record: `kubectl annotate node NAME haulout.dev/record-`. The "
           "agent then uncordons the node, releases its slot and starts anew. Haulout cannot manage machines whose "
           "boot id never changes: stop the agents there."},
    Reason{reason::boot_id_foreign, boot, trouble,
           "The agent reads another boot id than the kubelet reports: it runs on another machine than its node, or "
           "reads the boot id of a container's host. It would not notice a reboot, so it starts no update.",
           "See both ids in the message. Check `--node-name`: the agent must run on that node. If the machine is "
           "itself a container (LXC, nspawn), set `ProtectProc=default`, `ProtectKernelTunables=no` and "
           "`ProtectControlGroups=no` in the agent's unit (`systemctl edit haulout`). Then restart the agent."},
    Reason{reason::boot_not_complete, boot, progress,
           "The machine has booted, but its startup has not finished, or the agent cannot read whether it has.",
           "If the reason stays, run `systemctl list-jobs` and `systemctl --failed` on the node."},
    Reason{reason::node_not_ready, boot, progress, "The kubelet does not report the node Ready for this boot.",
           "If the reason stays, see the kubelet's log on the node."},
    Reason{
        reason::condition_not_met, boot, progress,
        "The node is Ready, but it has a taint `readiness.k8s.io/*` that it did not have before the update, or a "
        "condition of `--verify-condition` does not have its status. The node keeps its slot. In the state `verifying` "
        "it is degraded after `--verify-limit`; in `soaking` it waits as long as it takes.",
        "See the taints and conditions that the message names: `kubectl describe node NAME`, and the log of the "
        "program that sets them. The node goes on by itself when they are as they must be. If only a reboot helps, "
        "reboot the machine: the agent verifies it again. `haulout request-reboot NODE` works only if the node is "
        "degraded; the node then stays cordoned until it is well."},
    Reason{reason::autoscalers_not_held, boot, trouble,
           "The annotations that ask autoscalers to leave the node alone during its update cannot be written or "
           "removed: the API server does not answer, or an admission policy refuses them. The update goes on without "
           "them. Only an Event and the log show this reason.",
           "See the error in the message; the agent tries again. If a policy refuses the annotations, permit them, or "
           "set `--hold-autoscalers=false`. If some are left, remove those that the annotation "
           "`haulout.dev/held-autoscalers` names, and it."},
    Reason{reason::request_unreadable, boot, trouble,
           "The annotation `haulout.dev/request` of the Node has a value that the agent cannot read, so it requests no "
           "reboot. An idle node shows this reason until the value is changed or removed; in every other state there "
           "is only an Event and a line in the log.",
           "Write `reboot`, or `reboot at` with a time like `2026-12-24T22:00:00Z`, perhaps with a reason after a "
           "semicolon; or run `haulout request-reboot NODE`. To request nothing, remove the annotation: `kubectl "
           "annotate node NAME haulout.dev/request-`."},
    Reason{reason::waiting_taint_failed, boot, trouble,
           "The taint of `--waiting-taint` cannot be added or removed: the API server does not answer, or an admission "
           "policy or the agent's authority refuses it. The update goes on without it. Only an Event and the log show "
           "this reason.",
           "See the error in the message; the agent tries again. With the authorities `impersonation` and `kubelet` no "
           "agent may change taints: use `--authority=policies`. If a policy refuses the taint, apply the manifests of "
           "this version, or remove `--waiting-taint`. If a taint is left that the annotation "
           "`haulout.dev/waiting-taint` of the Node names, remove both: `kubectl taint node NAME "
           "KEY:PreferNoSchedule-` and `kubectl annotate node NAME haulout.dev/waiting-taint-`."},
    Reason{reason::version_unexpected, boot, trouble,
           "After the reboot another version runs than expected, and one of these holds or may hold: a reboot is still "
           "needed, or the update tool offers the expected version again. After `--verify-limit` the node is degraded "
           "and keeps its slot.",
           "Check the update tool on the node; the message has both versions. The node goes on when the expected "
           "version runs, or when no reboot is needed and the update tool does not offer that version again. If it is "
           "degraded and needs another reboot, run `haulout request-reboot NODE`."},
    Reason{reason::rolled_back, boot, trouble,
           "The old version runs again: the new one did not boot, or was rolled back. The agent tries that version on "
           "this node again only on request. While the node is degraded it keeps its slot, and nodes of its pool that "
           "need that version wait.",
           "Find out why the new version did not boot. Then run `haulout request-reboot NODE`: the agent tries the "
           "version that waits then. A degraded node needs this request; an idle node also tries a newer version "
           "without it."},
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
| conditions `MaintenancePlanned`, `DrainInProgress`, `MaintenanceInProgress` | while they are True ([which tells what](tasks.md#let-other-programs-know-of-an-update)), in `kubectl describe node NAME` |
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
Where the tables mention an Event or a message, the report of a command has the same text.
)";

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
                        markdown_cell(reason.meaning), markdown_cell(reason.remedy));
  }
  return page;
}

}  // namespace haulout::agent
