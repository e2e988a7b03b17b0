// Review APIs: rights and identity of the caller.
#include "k8s/codec.hpp"
#include "sim/api_server.hpp"

namespace haulout::sim {

// SelfSubjectAccessReview: allows everything that is not in Switches::forbidden.
http::Response ApiServer::access_review(const Call& call) {
  Json review = Json::parse(call.request.body, nullptr, false);
  if (!review.is_object()) return bad_request("the object provided is unrecognized").response();
  const Json& wanted = at(review, "/spec/resourceAttributes");
  const std::string sub = text(wanted, "/subresource");
  const std::string what = text(wanted, "/verb") + " " + text(wanted, "/resource") + (sub.empty() ? "" : "/" + sub);
  review["status"] = {{"allowed", world_.switches.forbidden.count(what) == 0}};
  review["kind"] = "SelfSubjectAccessReview";
  review["apiVersion"] = "authorization.k8s.io/v1";
  return json_response(201, review.dump());
}

http::Response ApiServer::self_review(const Call& call) {
  const Identity* identity = caller(call);
  Json info = {{"username", user(call)}, {"groups", Json::array({"system:authenticated"})}};
  if (identity) {
    if (!identity->uid.empty()) info["uid"] = identity->uid;
    info["groups"] = identity->groups;
    for (const auto& [claim, value] :
         {std::pair("node-name", identity->node_name), std::pair("node-uid", identity->node_uid),
          std::pair("pod-name", identity->pod_name), std::pair("pod-uid", identity->pod_uid),
          std::pair("credential-id", identity->credential_id)})
      if (!value.empty()) info["extra"][std::string("authentication.kubernetes.io/") + claim] = Json::array({value});
  }
  const Json review = {{"kind", "SelfSubjectReview"},
                       {"apiVersion", "authentication.k8s.io/v1"},
                       {"metadata", {{"creationTimestamp", k8s::format_time(world_.wall_now())}}},
                       {"status", {{"userInfo", std::move(info)}}}};
  return json_response(201, review.dump());
}

}  // namespace haulout::sim
