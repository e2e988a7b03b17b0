#include "cli/options/settings.hpp"

namespace haulout::cli {

drain::Options Settings::kubectl_defaults() {
  using drain::Treatment;
  drain::Options options;
  options.policy.daemon_set = Treatment::refuse;
  options.policy.orphaned_daemon_set = Treatment::refuse;
  options.policy.finished = Treatment::evict;
  options.policy.empty_dir = Treatment::refuse;
  options.policy.unmanaged = Treatment::refuse;
  options.policy.do_not_disrupt = Treatment::evict;
  options.max_concurrent = 0;
  options.restore_cordon_on_failure = false;
  options.fail_fast = true;
  options.volumes = drain::VolumeWait::off;
  return options;
}

}  // namespace haulout::cli
