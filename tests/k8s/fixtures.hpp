// Response bodies as kube-apiserver 1.36 writes them. Pure.
#pragma once

#include <string>

namespace haulout::k8s::fixtures {

inline const std::string evicted = R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201})";

// {"kind":"Status",…,"status":"Failure",<tail>
inline std::string failure(const std::string& tail) {
  return R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",)" + tail + "}";
}

inline const std::string budget = failure(
    R"("message":"Cannot evict pod as it would violate the pod's disruption budget.","reason":"TooManyRequests","details":{"causes":[{"reason":"DisruptionBudget","message":"The disruption budget web needs 1 healthy pods and has 1 currently"}]},"code":429)");
inline const std::string budget_processing = failure(
    R"("message":"Cannot evict pod as it would violate the pod's disruption budget.","reason":"TooManyRequests","details":{"causes":[{"reason":"DisruptionBudget","message":"The disruption budget web is still being processed by the server."}],"retryAfterSeconds":10},"code":429)");
inline const std::string wrong_uid = failure(
    R"("message":"Operation cannot be fulfilled on Pod \"a\": the UID in the precondition (0000) does not match the UID in record (b362). The object might have been deleted and then recreated","reason":"Conflict","details":{"name":"a","kind":"Pod"},"code":409)");
inline const std::string pod_gone = failure(
    R"("message":"pods \"missing\" not found","reason":"NotFound","details":{"name":"missing","kind":"pods"},"code":404)");
inline const std::string namespace_dying = failure(
    R"("message":"pods \"d\" is forbidden: unable to create new content in namespace dying because it is being terminated","reason":"Forbidden","details":{"name":"d","kind":"pods","causes":[{"reason":"NamespaceTerminating","message":"namespace dying is being terminated","field":"metadata.namespace"}]},"code":403)");
inline const std::string rbac = failure(
    R"("message":"pods is forbidden: User \"system:node:k1\" cannot list resource \"pods\" in API group \"\" at the cluster scope: can only list/watch pods with spec.nodeName field selector","reason":"Forbidden","details":{"kind":"pods"},"code":403)");
inline const std::string node_restriction = failure(
    R"("message":"pods \"other\" is forbidden: node k1 can only evict pods with spec.nodeName set to itself","reason":"Forbidden","details":{"name":"other","kind":"pods"},"code":403)");
inline const std::string unauthorized = failure(R"("message":"Unauthorized","reason":"Unauthorized","code":401)");
inline const std::string webhook_denied =
    failure(R"("message":"admission webhook \"a.example.com\" denied the request: draining slowly","code":400)");
inline const std::string two_budgets = failure(
    R"("message":"This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.","code":500)");
inline const std::string expired_list =
    failure(R"("message":"The resourceVersion for the provided list is too old.","reason":"Expired","code":410)");
inline const std::string expired_continue =
    R"({"kind":"Status","apiVersion":"v1","metadata":{"continue":"eyJ2"},"status":"Failure","message":"The provided continue parameter is too old to display a consistent list result.","reason":"Expired","code":410})";
inline const std::string future_list = failure(
    R"("message":"Timeout: Too large resource version: 100492, current: 493","reason":"Timeout","details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}],"retryAfterSeconds":1},"code":504)");
inline const std::string shutting_down =
    failure(R"("message":"apiserver is shutting down","reason":"ServiceUnavailable","code":503)");
inline const std::string timeout_without_kind =
    R"({"metadata":{},"status":"Failure","message":"Timeout: request did not complete within the allotted timeout","reason":"Timeout","details":{},"code":504})";

inline const std::string expired_event =
    R"j({"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version: 1 (272)","reason":"Expired","code":410}})j";
inline const std::string bookmark =
    R"({"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"241"},"spec":{"containers":null},"status":{}}})";

// A pod with everything that the decoder reads, as an item of a list (without kind and apiVersion).
inline const std::string full_pod =
    R"({"metadata":{"name":"web-0","generateName":"web-","namespace":"shop","uid":"u1","resourceVersion":"17","generation":2,"creationTimestamp":"2026-11-21T01:00:00Z","deletionTimestamp":"2026-11-21T02:00:30Z","deletionGracePeriodSeconds":30,"labels":{"app":"web","containers":"yes"},"annotations":{"kubernetes.io/config.source":"api","haulout.dev/drain-order":"3","leaderworkerset.sigs.k8s.io/size":"4","karpenter.sh/do-not-disrupt":"true"},"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n","uid":"x"},{"apiVersion":"apps/v1","kind":"StatefulSet","name":"web","uid":"o1","controller":true,"blockOwnerDeletion":true}],"finalizers":["example.com/hold"],"managedFields":[{"manager":"kubectl","operation":"Update","apiVersion":"v1","time":"2026-11-21T01:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{}}}}}}]},"spec":{"volumes":[{"name":"token","projected":{"sources":[]}},{"name":"scratch","emptyDir":{}}],"containers":[{"name":"c","image":"i","resources":{}}],"restartPolicy":"Always","terminationGracePeriodSeconds":120,"nodeName":"n1","tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}],"priorityClassName":"high","priority":1000,"schedulingGroup":{"podGroupName":"train"}},"status":{"phase":"Running","conditions":[{"type":"DisruptionTarget","status":"True"},{"type":"Ready","status":"True"}],"startTime":"2026-11-21T01:00:01Z","containerStatuses":[{"name":"c","state":{"terminated":{"exitCode":0}},"ready":false}]}})";

// The smallest valid pod.
inline std::string pod(const std::string& name, const std::string& uid, const std::string& rv,
                       const std::string& phase = "Running") {
  return R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":")" + name + R"(","namespace":"shop","uid":")" + uid +
         R"(","resourceVersion":")" + rv + R"("},"spec":{"nodeName":"n1"},"status":{"phase":")" + phase + R"("}})";
}
inline std::string list(const std::string& kind, const std::string& rv, const std::string& items,
                        const std::string& continue_token = "") {
  const auto more = continue_token.empty() ? std::string() : R"(,"continue":")" + continue_token + R"(")";
  return R"({"kind":")" + kind + R"(","apiVersion":"v1","metadata":{"resourceVersion":")" + rv + R"(")" + more +
         R"(},"items":[)" + items + "]}";
}
inline std::string event(const std::string& type, const std::string& object) {
  return R"({"type":")" + type + R"(","object":)" + object + "}";
}

inline const std::string node =
    R"({"kind":"Node","apiVersion":"v1","metadata":{"name":"n1","uid":"nu","resourceVersion":"9","labels":{"pool":"a"},"annotations":{"haulout.dev/cordon":"{}","other":"x"},"managedFields":[{"manager":"kubectl","operation":"Update","time":"2026-11-21T01:00:00Z","fieldsV1":{"f:spec":{"f:unschedulable":{}}}},{"manager":"kubelet","operation":"Update","fieldsV1":{"f:status":{}},"subresource":"status"}]},"spec":{"unschedulable":true,"taints":[{"key":"node.kubernetes.io/unschedulable","effect":"NoSchedule","timeAdded":"2026-11-21T01:00:00Z"}]},"status":{"conditions":[{"type":"MemoryPressure","status":"False"},{"type":"Ready","status":"True"}],"images":[{"names":["a"],"sizeBytes":1}]}})";

inline const std::string pdb =
    R"({"kind":"PodDisruptionBudget","apiVersion":"policy/v1","metadata":{"name":"web","namespace":"shop","uid":"pu","resourceVersion":"5","generation":3},"spec":{"minAvailable":"50%","selector":{"matchLabels":{"app":"web"},"matchExpressions":[{"key":"tier","operator":"NotIn","values":["db"]},{"key":"old","operator":"DoesNotExist"}]},"unhealthyPodEvictionPolicy":"AlwaysAllow"},"status":{"observedGeneration":2,"disruptionsAllowed":1,"currentHealthy":3,"desiredHealthy":2,"expectedPods":4,"disruptedPods":{"web-1":"2026-11-21T01:00:00Z"},"conditions":[{"type":"DisruptionAllowed","status":"False","reason":"SyncFailed","message":"boom"}]}})";

}  // namespace haulout::k8s::fixtures
