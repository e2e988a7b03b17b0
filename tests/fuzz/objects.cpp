#include "k8s/codec_requests.hpp"
#include "tests/fuzz/whole.hpp"

namespace haulout::fuzz {

static void one(std::string_view input) {
  is_whole(k8s::decode_pod(input));
  is_whole(k8s::decode_node(input));
  is_whole(k8s::decode_pdb(input));
  is_whole(k8s::decode_daemon_set(input));
  is_whole(k8s::decode_service(input));
  is_whole(k8s::decode_lease(input));
  is_whole(k8s::decode_config_map(input));
  are_whole(k8s::decode_pod_list(input));
  are_whole(k8s::decode_node_list(input));
  are_whole(k8s::decode_pdb_list(input));
  are_whole(k8s::decode_lease_list(input));
  are_whole(k8s::decode_config_map_list(input));
  std::ignore = k8s::decode_access_review(input);
  std::ignore = k8s::decode_self_review(input);
  std::ignore = k8s::decode_write_answer(input);
}

static const Target target("objects", one);

}  // namespace haulout::fuzz
