#include "k8s/requests.hpp"
#include "tests/fuzz/whole.hpp"

namespace haulout::fuzz {

static void one(std::string_view input) {
  is_whole(k8s::decode<k8s::Pod>(input));
  is_whole(k8s::decode<k8s::Node>(input));
  is_whole(k8s::decode<k8s::PodDisruptionBudget>(input));
  is_whole(k8s::decode<k8s::DaemonSet>(input));
  is_whole(k8s::decode<k8s::Service>(input));
  is_whole(k8s::decode<k8s::Lease>(input));
  is_whole(k8s::decode<k8s::ConfigMap>(input));
  are_whole(k8s::decode_list<k8s::Pod>(input));
  are_whole(k8s::decode_list<k8s::Node>(input));
  are_whole(k8s::decode_list<k8s::PodDisruptionBudget>(input));
  are_whole(k8s::decode_list<k8s::Lease>(input));
  are_whole(k8s::decode_list<k8s::ConfigMap>(input));
  std::ignore = k8s::decode_access_review(input);
  std::ignore = k8s::decode_self_review(input);
  std::ignore = k8s::decode_write_answer(input);
}

static const Target target("objects", one);

}  // namespace haulout::fuzz
