#include <algorithm>
#include <array>

#include "agent/report/reasons.hpp"

namespace haulout::agent {
namespace {

using enum Concern;

constexpr std::string_view gates = "Gates: not now";
constexpr std::string_view turns = "Turns";
constexpr std::string_view system = "The operating system and the API server";
constexpr std::string_view drain = "The drain";
constexpr std::string_view pods = "Pods that hold a drain up";
constexpr std::string_view left = "Pods that are left where they are";
constexpr std::string_view finds = "Further diagnoses of a drain";
constexpr std::string_view hooks = "Hooks";
constexpr std::string_view boot = "The reboot and what follows it";

constexpr std::array table{
    Reason{"OutsideWindow", gates, waiting, "No maintenance window is open.",
           "Wait; the message says when the next one opens. Windows are `--window` and `--blackout`."},
    Reason{"WindowTooShort", gates, waiting,
           "A window is open, but it closes before an update of this node, as long as the last ones took, could end.",
           "Wait; if the message says that no window is long enough, write a longer one."},
    Reason{"Paused", gates, waiting,
           "Somebody paused this node, its pool or the cluster; the message says who and why.",
           "`haulout resume`, or let the pause run out."},
    Reason{
        "CordonedByPerson", gates, waiting,
        "A person has cordoned this node, with kubectl, `haulout cordon` or `haulout drain`; the message says who and "
        "since when. The agent leaves it alone.",
        "`kubectl uncordon` once the work on the node is done. `--cordoned-nodes update` updates such nodes, too."},
    Reason{
        "PauseUnknown", gates, trouble, "Nobody knows whether updates are paused, so they are taken to be.",
        "The message says what could not be read: the ConfigMap `haulout` of the agent's namespace, or the right to."},
    Reason{"BlockedByPod", gates, waiting, "A pod on this node matches `--blocking-pod-selector`.",
           "Wait until it has ended; the message names it."},
    Reason{"BlockingPodsUnknown", gates, trouble, "Nobody knows whether a pod matches `--blocking-pod-selector`.",
           "The message has the API server's words; it is tried again."},
    Reason{"BlockedByAlert", gates, waiting, "An alert that `--prometheus-query` finds holds the node back.",
           "The message names the alert: heal what it is about, or silence it."},
    Reason{"PrometheusQueryRefused", gates, trouble, "Prometheus does not understand `--prometheus-query`.",
           "Correct the query; the message has Prometheus' words."},
    Reason{"PrometheusUnavailable", gates, trouble,
           "Prometheus does not answer, so nobody knows whether an alert fires.",
           "Reach it, or let nodes go without it: `--prometheus-fail-mode open`."},
    Reason{"FleetUnknown", gates, trouble, "Nobody knows how the other nodes of the pool are.",
           "The message has the API server's words; it is tried again."},
    Reason{"UpdateFailedElsewhere", gates, trouble,
           "Another node of the pool is degraded since its reboot to the version that this node wants, too.",
           "See to that node first; the message names it."},
    Reason{
        "RebootLoop", gates, trouble,
        "The node was rebooted for this very reason and the operating system still asks for it: another reboot would "
        "change nothing.",
        "See on the node why the update does not take effect; `haulout request-reboot` has it tried once more."},
    Reason{"TooManyReboots", gates, trouble, "The node was rebooted more often within a day than is allowed.",
           "See why it wants to reboot so often, or wait: it goes on when a day has passed."},
    Reason{"BackingOff", gates, waiting, "The last attempt came to nothing; the next one follows after a while.",
           "The message has the last attempt's cause: that is what to look at."},
    Reason{
        "CannotReboot", gates, trouble,
        "The machine would refuse the reboot, or somebody holds a block inhibitor: the message has its own words. No "
        "node is cordoned for that; one that is drained already stays so, and is rebooted when the inhibitor has gone.",
        "Usually rights or a mount: D-Bus policy, polkit, AppArmor or SELinux; `haulout agent --check` tries it. An "
        "inhibitor: wait, or end what holds it (`systemd-inhibit --list`)."},

    Reason{"WaitingForSlot", turns, waiting, "Other nodes of the pool have all the turns; the message says which.",
           "Wait; if a node in the message is degraded, that node is what to look at."},
    Reason{"SlotsUnavailable", turns, trouble, "Nobody can tell whether a turn is free: the message says why.",
           "Reach the API server or the FleetLock server, and see that the agent may use Leases in its namespace."},
    Reason{"CannotRelease", turns, trouble, "The node is done, but its turn could not be given back yet.",
           "It is tried again until it works; the message says what is in the way."},

    Reason{
        "BackendUnknown", system, trouble,
        "Nobody knows whether a reboot is needed, or which version runs: the operating system's update tool gives no "
        "answer. Unknown never reboots a node.",
        "The message says what is missing; `haulout agent --check` asks again and shows the answer."},
    Reason{"ApiUnavailable", system, trouble, "The API server does not answer, so nothing can be proved.",
           "Nothing on this node; the agent goes on by itself once the server answers."},
    Reason{"NodeMissing", system, trouble, "The API server answers, and has no Node of this name.",
           "Restart the kubelet, which registers the Node anew; if the machine was retired, stop its agent."},
    Reason{
        "NodeNotWritten", system, trouble,
        "The API server answers, and refuses what the agent writes to its Node: it stays in its state.",
        "The message has the server's words: usually a right that is missing, an admission webhook, too many bytes of "
        "annotations, or a Node that was made anew under an older pod of the agent. `haulout agent --check` tries it."},
    Reason{"SecondAgent", system, trouble,
           "Another agent writes the record of this Node, too: a DaemonSet and a systemd unit, or two DaemonSets.",
           "Stop one of them. Until then each makes way for the other, and updates take longer."},
    Reason{
        "RecordUnreadable", system, trouble,
        "The annotation haulout.dev/record, in which the agent keeps what it must know after a crash, is not one that "
        "it can read.",
        "See that the node is in order, then remove the annotation: `kubectl annotate node NAME haulout.dev/record-`."},
    Reason{"ReadyFileFailed", system, trouble, "The file /run/haulout/ready cannot be written or removed.",
           "Give the agent the directory /run/haulout of the host, writable."},

    Reason{"Evicting", drain, progress, "The pods are leaving; the message says how many have gone.", "Nothing."},
    Reason{
        "DetachingVolumes", drain, waiting,
        "The pods have gone; volumes that they used are still attached to the node, and a reboot now could harm them.",
        "Wait; the message says what the volume waits for. One that stays becomes VolumeStuck."},
    Reason{
        "VolumeStuck", drain, trouble,
        "The pods have gone, and a volume that they used is still attached to the node, longer than `--volume-limit`.",
        "See that its driver's controller runs, and the kubelet of the node; the message names the volume and what is "
        "said against it. The drain goes on by itself once it is detached."},
    Reason{"ReattachingVolumes", drain, progress,
           "The pods have gone and their volumes are detached; another node is given time to have them "
           "(`--reattach-limit`).",
           "Nothing: it ends by itself, with a warning where no node has one by then, and the node goes on."},
    Reason{"Uncordoned", drain, waiting, "Somebody made the node schedulable while it was being drained, or was ready.",
           "Nothing; it is tried again after a while. To keep the agent away, pause the node."},
    Reason{"ApplyingUpdate", drain, progress,
           "The operating system's update tool puts the new version in place for the next boot; no pod leaves before.",
           "Nothing."},
    Reason{"ApplyFailed", drain, trouble, "The new version could not be put in place, so no pod had to leave.",
           "The message has the update tool's words; it is tried again after a while."},
    Reason{"DrainBlocked", drain, trouble, "The last drain did not end before `--drain-deadline`.",
           "The message names what held it up."},
    Reason{"DrainFailed", drain, trouble, "The last drain could not be carried out, or policy refused it.",
           "The message names the pods or the request that failed."},
    Reason{"WaitingForLoadBalancers", drain, progress,
           "The node is cordoned and taken out of external load balancers, which have `--lb-drain-wait` to stop "
           "sending to "
           "it; then its pods leave.",
           "Nothing."},
    Reason{"CannotExclude", drain, trouble,
           "The node could not be taken out of external load balancers yet, so no pod has to leave.",
           "It is tried again until it works; the message says what is in the way."},
    Reason{"CannotRestore", drain, trouble, "The node could not be given back to load balancers yet.",
           "It is tried again until it works; the message says what is in the way."},
    Reason{"CannotUncordon", drain, trouble, "The agent's own cordon could not be taken back yet.",
           "It is tried again until it works; `kubectl uncordon` does no harm."},

    Reason{"WaitingForHook", hooks, progress,
           "A hook is at work, or somebody who takes part by annotation has not answered; the message says which.",
           "Nothing, unless it stays: see what the hook does."},
    Reason{
        "HookFailed", hooks, trouble, "A hook failed or took too long.",
        "The message names the hook. Where its failure stops the update, executables are tried again by themselves."},
    Reason{"HookSkipped", hooks, trouble, "A file among the hooks was not run: it is none that may be.",
           "The message says why: usually its rights, its owner or its name."},

    Reason{"BlockedByBudget", pods, waiting, "A PodDisruptionBudget allows no disruption of the pod now.",
           "Wait, add a replica, or change the budget; one that can never allow any is found as BudgetNeverAllows. Its "
           "pods are "
           "asked for now and then all the same: a webhook may take that as its sign."},
    Reason{"OverlappingBudgets", pods, trouble,
           "More than one PodDisruptionBudget selects the pod, and the API server then refuses every eviction.",
           "Change their selectors until one is left."},
    Reason{"AdmissionDenied", pods, trouble, "An admission webhook or policy denies the eviction.",
           "The message has its words; some webhooks deny until they have prepared something. If it stays, ask its "
           "owner."},
    Reason{"Terminating", pods, progress, "The pod is on its way out.", "Nothing."},
    Reason{"NamespaceTerminating", pods, progress, "The pod's namespace is being deleted and takes the pod with it.",
           "Nothing, unless the namespace itself is stuck."},
    Reason{"Throttled", pods, progress, "The API server, or the way to it, asks everybody to slow down.", "Nothing."},
    Reason{"ServerError", pods, progress, "The eviction failed in a way that passes; it is sent again.",
           "If it stays, the message has the server's words."},
    Reason{"AwaitingWatch", pods, progress, "The server says that the pod has gone or was replaced; the watch decides.",
           "Nothing."},
    Reason{"Forbidden", pods, trouble, "The agent may not evict the pod.",
           "Give it `create` on `pods/eviction`; the shipped RBAC does."},
    Reason{"Rejected", pods, trouble, "The server rejects the eviction for a reason that no repetition heals.",
           "The message has its words."},
    Reason{"PodStuckTerminating", pods, trouble, "The pod is still there a minute after its grace period ended.",
           "See the finalizers in the message, the Events of the pod and the log of the kubelet: usually a preStop "
           "hook, a "
           "process that does not end, or a volume that cannot be unmounted."},
    Reason{"PodPinned", pods, trouble, "A controller brings the pod back to this cordoned node again and again.",
           "Let it stay (`--pinned leave`, or `--leave-pods` with its labels), scale it down, or have its owner remove "
           "the toleration, the nodeName or the scheduler that binds it there. With `--pinned leave` it stays, and the "
           "message says so."},
    Reason{"BlockedByControllerBudget", pods, waiting,
           "As many pods of its controller as `--max-unavailable-per-controller` allows are without a Ready "
           "replacement.",
           "Wait until a replacement is Ready; the message has the numbers. One that never is has to be healed."},
    Reason{"AwaitingReplacement", pods, waiting,
           "The first pod of its controller was evicted, and its replacement has found no node yet (`--canary`).",
           "Wait: it goes on when the replacement has found one, or none is expected any more."},
    Reason{"ReplacementUnschedulable", pods, trouble,
           "A replacement for an evicted pod of its controller finds no node. With `--canary` no further pod of it is "
           "evicted; with `--max-unavailable-per-controller` alone the replacement counts as missing.",
           "The message has the scheduler's words: make room, or change what the pod asks for."},
    Reason{"ControllerUnknown", pods, progress, "Its controller, or that one's pods, are being looked up.",
           "Nothing, unless it stays: see the rights in docs/guards.md."},
    Reason{"VolumesInTurn", pods, progress,
           "Pods with volumes of one CSI driver leave one at a time (`--serialize-volumes`), and it is another's turn.",
           "Nothing: the message says which pod or volume goes first. Neither a pod that itself waits nor a volume "
           "past `--volume-limit` holds others."},
    Reason{"SingleReplica", pods, trouble,
           "It is the only pod of its controller, and `--single-replica block` says not to evict it.",
           "Scale the controller up for the time being, or annotate it `haulout.dev/single-replica: allow`."},
    Reason{
        "DoNotDisrupt", pods, waiting, "The pod's annotation protects it from eviction.",
        "Wait for it to finish, or remove the annotation. An agent ignores all of them with `--ignore-do-not-disrupt`, "
        "`haulout drain` without `--respect-do-not-disrupt`."},
    Reason{"EmptyDir", pods, trouble, "The pod has an emptyDir volume, and `--emptydir refuse` protects its data.",
           "Delete the pod yourself once its data may go."},
    Reason{"Unmanaged", pods, trouble, "Nothing would bring the pod back, and `--unmanaged` says not to evict it.",
           "Delete the pod yourself, or give it a controller."},
    Reason{"OrphanedDaemonSetPod", pods, trouble, "The pod's DaemonSet does not exist any more.", "Delete the pod."},

    Reason{"DaemonSetManaged", left, progress, "Its DaemonSet would bring it back to this node at once.", "Nothing."},
    Reason{"MirrorPod", left, progress, "A static pod: only its manifest on the node can remove it.", "Nothing."},
    Reason{"Finished", left, progress, "It has succeeded or failed; nothing of it runs.", "Nothing."},
    Reason{"NotSelected", left, progress, "It does not match the pod selector.", "Nothing."},
    Reason{"LeftByLabels", left, progress, "It matches `--leave-pods`, so it stays and goes down with the machine.",
           "Nothing."},
    Reason{"TerminatingTooLong", left, progress, "It has been terminating for longer than was to be waited.",
           "Nothing."},

    Reason{
        "BudgetNeverAllows", finds, trouble, "A PodDisruptionBudget can never allow a disruption.",
        "Change the budget; the Event names the field. Or delete its pods by hand when their owner agrees; pods that "
        "a controller such as a VirtualMachineInstance moves by itself are only to be waited for."},
    Reason{"BudgetOfSinglePod", finds, trouble, "A PodDisruptionBudget protects a single pod, which can never go.",
           "Scale its controller up for as long as the drain takes; or delete the pod by hand when its owner agrees. "
           "One that a controller such as a VirtualMachineInstance moves by itself is only to be waited for."},
    Reason{"BudgetNeedsAllPods", finds, trouble, "A PodDisruptionBudget needs all the pods that it has.",
           "Add a replica, or lower what it needs; the Event has the numbers."},
    Reason{"BudgetMisconfigured", finds, trouble,
           "A PodDisruptionBudget counts no pods, or allows nothing although all of them are healthy.",
           "The Event says which. Pods without a controller count only for an integer `minAvailable`."},
    Reason{"BudgetSyncFailed", finds, trouble, "The disruption controller cannot compute a PodDisruptionBudget.",
           "The Event has its words: usually a controller without the scale subresource. An integer `minAvailable` "
           "needs none."},
    Reason{"BudgetNotObserved", finds, trouble,
           "The disruption controller does not process a PodDisruptionBudget, or does not end what it counts as gone.",
           "See that kube-controller-manager runs."},
    Reason{"BudgetUnhealthyDeadlock", finds, trouble,
           "Pods that are not healthy may not leave, because too few of their PodDisruptionBudget are healthy.",
           "Set the budget's `unhealthyPodEvictionPolicy` to `AlwaysAllow`, or repair the pods; the Event names them."},
    Reason{"BudgetAwaitsReplacement", finds, waiting,
           "A PodDisruptionBudget waits for pods that are not Ready elsewhere, usually replacements.",
           "It opens when they are; the Event names them and what they wait for."},
    Reason{"BudgetDisruptionPending", finds, waiting,
           "A PodDisruptionBudget counts a pod as gone that was let go and is not being deleted; or a new pod of the "
           "same name.",
           "Wait: that ends by itself within two minutes; the Event says when."},
    Reason{"BudgetMapTooBig", finds, trouble,
           "So many evictions under a PodDisruptionBudget wait for the disruption controller that no more are taken.",
           "See that kube-controller-manager runs and keeps up."},
    Reason{"WebhookDenied", finds, trouble, "An admission webhook denies evictions.",
           "It may mean \"not yet\": the Event has its words. If it stays, ask the owner of the webhook."},
    Reason{"WebhookDown", finds, trouble,
           "An admission webhook cannot be called, and its `failurePolicy` has the server refuse the eviction then.",
           "See that the pods behind its Service run; the Event names both, and says when such a pod was on this node. "
           "A webhook's servers that the cordoned node takes with it leave last with the annotation "
           "`haulout.dev/drain-order`."},
    Reason{"NamespaceStuckTerminating", finds, trouble,
           "A namespace has been dying for more than five minutes; nothing is evicted from one.",
           "The Event says what is left in it, where that may be read; `kubectl get namespace NAME -o yaml` does."},
    Reason{"KubeletNotReady", finds, trouble,
           "The node's kubelet does not report it Ready; without a kubelet no pod vanishes.",
           "Bring the kubelet back. If the machine is gone for good, delete the Node."},
    Reason{"LocalVolume", finds, trouble,
           "A pod that is held up has a volume that exists on this node only: its replacement will stay Pending.",
           "Move the data first, or accept that for as long as the maintenance takes."},
    Reason{"OnlyOwnPodLeft", finds, trouble, "Only the pod that Haulout itself runs in is left.",
           "Run it as a DaemonSet pod, or from another node."},
    Reason{"ClockSkew", finds, trouble, "The clock of this machine is more than 30 s off the API server's.",
           "Set the clock: `timedatectl`, `chronyc tracking`."},
    Reason{"PodFinalizer", finds, trouble, "A pod has ended, and its finalizers keep it.",
           "The controllers that set them have to remove them; the Event names them."},
    Reason{"VolumeDetachError", finds, trouble, "A CSI driver cannot detach a volume from the node.",
           "The Event has its words; it tries again by itself. Its controller's log tells more."},
    Reason{"VolumesUnreadable", finds, trouble, "Whether volumes are detached cannot be read from the API server.",
           "The Event has the server's words; it is asked again."},
    Reason{"EmptinessUnproved", finds, trouble,
           "No pod is left in the agent's view, and the API server does not confirm it: the list of pods or the Node "
           "cannot be read.",
           "The Event has the server's words and, where it is one, the right that is missing; it is asked again."},
    Reason{
        "VolumeAttachmentLeaked", finds, trouble,
        "A volume is attached to the node though no pod of it was seen to use it, and by the Node's status neither its "
        "kubelet nor kube-controller-manager has it in hand. It is not waited for.",
        "See what the volume is; if nothing needs it, delete the VolumeAttachment that the Event names."},
    Reason{"OnlyReplicaEvicted", finds, waiting, "A pod that is the only one of its controller is evicted.",
           "Nothing, if that may be; a second replica would serve meanwhile."},
    Reason{"LastReadyPods", finds, waiting,
           "All Ready pods of a controller are on this node, and no budget keeps them from leaving together.",
           "Give it a PodDisruptionBudget, spread its pods, or set `--max-unavailable-per-controller`."},
    Reason{"ReplicasUnknown", finds, waiting,
           "How many replicas a controller has could not be found out, so it is taken to have more than one.",
           "The Event says why: often a right that is missing. Pods of a kind without replicas are counted by "
           "`--max-unavailable-per-controller` if they are annotated `haulout.dev/max-unavailable`."},
    Reason{"OverrideInvalid", finds, trouble, "An annotation of a guard makes no sense and is ignored.",
           "Correct it; the Event says how."},
    Reason{"RightMissing", finds, trouble, "The agent lacks a right that it needs for this drain.",
           "Give it what the Event names; the shipped RBAC has it."},
    Reason{"NodeGone", finds, trouble, "The Node was deleted or replaced during the drain.", "Nothing."},
    Reason{"UnmanagedPodEvicted", finds, trouble,
           "A pod was evicted that declares no controller: it will not come back.",
           "Create it again if it is missed; `--unmanaged refuse` holds the next drain up instead."},

    Reason{"Rebooting", boot, progress, "The reboot was asked for; the message says how.", "Nothing."},
    Reason{"ShuttingDown", boot, progress,
           "Somebody reboots or powers off the machine; its pods leave for as long as logind lets it wait.",
           "Nothing; `InhibitDelayMaxSec=` in logind.conf(5) is how long."},
    Reason{"ShutdownDrained", boot, progress,
           "Somebody rebooted or powered off the machine, and every pod that had to leave had left before.",
           "Nothing: the cordon is taken back once the machine is up again."},
    Reason{"ShutdownUndrained", boot, trouble,
           "Somebody rebooted or powered off the machine, and logind did not wait until every pod had left.",
           "Let Haulout reboot it (`haulout request-reboot`), or raise `InhibitDelayMaxSec=` in logind.conf(5)."},
    Reason{"CannotDelayShutdown", boot, trouble,
           "logind gives no delay lock, so a reboot that somebody else asks for takes the pods by surprise.",
           "The message has logind's words: usually rights or a mount, as for `CannotReboot`."},
    Reason{"RebootedMeanwhile", boot, trouble,
           "The machine went down, or somebody rebooted it, while its node was drained or before its reboot was asked "
           "for: no update has come of it. The node takes pods again once it is well; what is still wanted begins "
           "anew.",
           "Nothing if somebody rebooted it. If it crashed, its log tells why (`journalctl -b -1`)."},
    Reason{"Soaking", boot, progress,
           "The node is well after its reboot, and watched for a while before the next one may go.",
           "Nothing; `--soak` is how long."},
    Reason{"RebootFailed", boot, trouble,
           "The reboot was asked for in every way that is configured, and the machine did not go down.",
           "Reboot the machine, or have it tried again: `haulout request-reboot`."},
    Reason{
        "BootIdUnchanged", boot, trouble,
        "The machine was rebooted, and the agent reads the same boot id as before: it is a container that has the boot "
        "id of its host, or was booted without its kernel (`systemctl soft-reboot`). Nothing can be verified there, "
        "and "
        "no further reboot is asked for. The cordon stays, and the turn, so that no other node follows.",
        "See that the node is well, then remove the record: `kubectl annotate node NAME haulout.dev/record-`. Haulout "
        "cannot look after machines whose boot id never changes: stop its agents there."},
    Reason{
        "BootIdForeign", boot, trouble,
        "The agent reads another boot id than the kubelet reports: it runs on another machine than its node, or sees "
        "the boot id of the host of a container. It would notice no reboot, so it starts no update.",
        "The message has both. Let the agent see the machine's own `/proc/sys/kernel/random/boot_id`; for the unit in "
        "a "
        "container `ProtectProc=default` and `ProtectKernelTunables=no` (`systemctl edit haulout`). Then restart it."},
    Reason{"BootNotComplete", boot, progress, "The machine has booted, but its start has not come to an end.",
           "If it stays: `systemctl list-jobs` and `systemctl --failed` on the node."},
    Reason{"NodeNotReady", boot, progress, "The kubelet has not reported this boot Ready yet.",
           "If it stays: the kubelet's log on the node."},
    Reason{"VersionUnexpected", boot, trouble, "Another version runs than the reboot was to lead to.",
           "See the update tool on the node; the message has both versions."},
    Reason{
        "RolledBack", boot, trouble,
        "The old version runs again: the new one did not boot, or was rolled back. It is not tried again on this node. "
        "While the node is degraded its turn holds the others, which may want the same version.",
        "See why it did not boot, and have what is wanted by then tried: `haulout request-reboot`. Only a node that is "
        "idle tries a newer version by itself."},
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

}  // namespace haulout::agent
