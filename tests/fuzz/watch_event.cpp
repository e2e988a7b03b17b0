#include "k8s/codec.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace haulout::fuzz {
namespace {

template <class T>
void event_of(std::string_view line) {
  const auto event = k8s::decode_watch_event<T>(line);
  if (!event) return;
  if (event->type == k8s::WatchEventType::error) return;
  must(!event->resource_version.empty(), "an event has a resourceVersion");
  if (event->type == k8s::WatchEventType::bookmark) return;
  must(!event->object.name.empty() && !event->object.uid.empty(), "an event says which object it is about");
}

}  // namespace

static void one(std::string_view input) {
  event_of<k8s::Pod>(input);
  event_of<k8s::Node>(input);
  event_of<k8s::PodDisruptionBudget>(input);
  event_of<k8s::VolumeAttachment>(input);
  event_of<k8s::Lease>(input);
  event_of<k8s::ConfigMap>(input);
}

static const Target target("watch_event", one);

}  // namespace haulout::fuzz
