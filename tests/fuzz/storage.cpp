// Fuzzes the decoders of volumes, of the objects that attach them, and of their claims.
#include "tests/fuzz/whole.hpp"

namespace haulout::fuzz {

static void one(std::string_view input) {
  is_whole(k8s::decode<k8s::NodeVolumes>(input));
  is_whole(k8s::decode<k8s::VolumeAttachment>(input));
  is_whole(k8s::decode<k8s::PersistentVolume>(input));
  is_whole(k8s::decode<k8s::PersistentVolumeClaim>(input));
  is_whole(k8s::decode<k8s::Namespace>(input));
  are_whole(k8s::decode_list<k8s::VolumeAttachment>(input));
}

static const Target target("storage", one);

}  // namespace haulout::fuzz
