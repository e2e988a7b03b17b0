#include "k8s/codec.hpp"
#include "k8s/codec_requests.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace haulout::fuzz {
namespace {

template <class T>
void is_whole(const Result<T>& object) {
  if (object) must(!object->name.empty() && !object->uid.empty(), "an object has a name and a UID");
}

template <class T>
void are_whole(const Result<k8s::List<T>>& list) {
  if (!list) return;
  for (const T& item : list->items) must(!item.name.empty() && !item.uid.empty(), "an item has a name and a UID");
}

}  // namespace

static void one(std::string_view input) {
  is_whole(k8s::decode_pod(input));
  is_whole(k8s::decode_node(input));
  is_whole(k8s::decode_pdb(input));
  is_whole(k8s::decode_daemon_set(input));
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
