// Fuzzes the decoders of volumes, of the objects that attach them, and of their claims.
#include "tests/fuzz/whole.hpp"

namespace haulout::fuzz {

static void one(std::string_view input) {
  is_whole(k8s::decode_node_volumes(input));
  is_whole(k8s::decode_volume_attachment(input));
  is_whole(k8s::decode_persistent_volume(input));
  is_whole(k8s::decode_persistent_volume_claim(input));
  is_whole(k8s::decode_namespace(input));
  are_whole(k8s::decode_volume_attachment_list(input));
}

static const Target target("storage", one);

}  // namespace haulout::fuzz
