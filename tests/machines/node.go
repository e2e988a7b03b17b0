package machines

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"haulout.dev/haulout/tests/e2e"
)

// programs is the directory in which machines find the programs of build-machines.sh.
const programs = "/opt/node/bin"

const workloadImage = "machines.haulout.invalid/workload:1"

const containerdUnit = `[Unit]
Description=containerd
After=dbus.service
[Service]
Type=notify
ExecStart=/opt/node/bin/containerd --config /etc/containerd/config.toml
Environment=PATH=/opt/node/bin:/usr/sbin:/usr/bin:/sbin:/bin
Delegate=yes
KillMode=process
Restart=always
RestartSec=1
[Install]
WantedBy=multi-user.target
`

// The images are built locally. Nothing is pulled from a registry.
const imagesUnit = `[Unit]
Description=Images of the workload
Requires=containerd.service
After=containerd.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/opt/node/bin/ctr -n k8s.io images import /opt/node/bin/workload.tar
[Install]
WantedBy=multi-user.target
`

const kubeletUnit = `[Unit]
Description=kubelet
Requires=workload-images.service
After=containerd.service workload-images.service
[Service]
ExecStart=/opt/node/bin/kubelet --config=/var/lib/kubelet/config.yaml --kubeconfig=/etc/kubernetes/kubelet.conf --hostname-override=%s --node-ip=%s --v=1
Restart=always
RestartSec=1
KillMode=process
[Install]
WantedBy=multi-user.target
`

// The cgroups of the room have no controllers, so containers have no limits of memory and CPU.
const containerdConfig = `version = 3
[plugins.'io.containerd.cri.v1.images']
  snapshotter = 'overlayfs'
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = '` + workloadImage + `'
[plugins.'io.containerd.cri.v1.runtime']
  disable_cgroup = true
  restrict_oom_score_adj = true
  disable_apparmor = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ['/usr/lib/cni']
  conf_dir = '/etc/cni/net.d'
[plugins.'io.containerd.cri.v1.runtime'.containerd]
  default_runtime_name = 'runc'
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = 'io.containerd.runc.v2'
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
  BinaryName = '/opt/node/bin/runc'
  SystemdCgroup = false
`

const cniConfig = `{
  "cniVersion": "1.0.0", "name": "pods",
  "plugins": [{
    "type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false,
    "ipam": {"type": "host-local", "dataDir": "/run/cni", "ranges": [[{"subnet": "%s"}]], "routes": [{"dst": "0.0.0.0/0"}]}
  }]
}
`

const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous: {enabled: false}
  x509: {clientCAFile: /etc/kubernetes/pki/ca.crt}
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
cgroupDriver: cgroupfs
cgroupsPerQOS: false
enforceNodeAllocatable: []
failCgroupV1: false
failSwapOn: false
localStorageCapacityIsolation: false
resolvConf: ""
nodeStatusUpdateFrequency: 2s
nodeLeaseDurationSeconds: 10
featureGates: {KubeletInUserNamespace: true}
`

// nspawn mounts a boot id of its own over the kernel's, from a file that it deletes. A sandbox with
// ProtectKernelTunables= mounts /proc/sys again and shows the kernel's boot id instead. On real hardware the two are
// the same. So this unit copies the machine's boot id to a file, and the drop-in mounts that file in the sandbox.
const bootIDUnit = `[Unit]
Description=The boot id as a file that can be mounted
DefaultDependencies=no
After=systemd-tmpfiles-setup.service
Before=sysinit.target
RequiresMountsFor=/run
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=sh -c 'cat /proc/sys/kernel/random/boot_id >/run/boot-id && umount /proc/sys/kernel/random/boot_id && mount --bind /run/boot-id /proc/sys/kernel/random/boot_id'
[Install]
WantedBy=sysinit.target
`

const bootIDDropIn = `[Service]
BindReadOnlyPaths=/run/boot-id:/proc/sys/kernel/random/boot_id
`

// MakeNode installs containerd and a kubelet, with its identity where kubeadm writes it, on the disk of a machine that
// is off.
func MakeNode(m *Machine, controlPlane *e2e.ControlPlane) error {
	kubeconfig, identity, err := kubeletIdentity(m.Name, controlPlane)
	if err != nil {
		return err
	}
	for path, content := range map[string]string{
		"/etc/hostname":                                      m.Name + "\n",
		"/etc/hosts":                                         "127.0.0.1 localhost " + m.Name + "\n",
		"/etc/systemd/system/containerd.service":             containerdUnit,
		"/etc/systemd/system/workload-images.service":        imagesUnit,
		"/etc/systemd/system/kubelet.service":                fmt.Sprintf(kubeletUnit, m.Name, machineAddress(m.Number)),
		"/etc/systemd/system/boot-id.service":                bootIDUnit,
		"/etc/systemd/system/haulout.service.d/boot-id.conf": bootIDDropIn,
		"/etc/containerd/config.toml":                        containerdConfig,
		"/etc/cni/net.d/10-pods.conflist":                    fmt.Sprintf(cniConfig, podRange(m.Number)),
		kubeletCA:                                            string(controlPlane.CA.PEM),
	} {
		if err := m.Write(path, content); err != nil {
			return err
		}
	}
	if err := m.WriteSecret(kubeletKubeconfig, kubeconfig); err != nil {
		return err
	}
	for unit, target := range map[string]string{
		"containerd": "multi-user", "workload-images": "multi-user", "kubelet": "multi-user", "boot-id": "sysinit",
	} {
		if err := m.enable(unit, target); err != nil {
			return err
		}
	}
	// /var/lib/kubelet is a volume of the machine (see Machine.volume).
	kubelet := m.volume("kubelet")
	if err := os.MkdirAll(filepath.Join(kubelet, "pki"), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(kubelet, "config.yaml"), []byte(kubeletConfig), 0o644); err != nil {
		return err
	}
	const dated = "kubelet-client-2026-01-01-00-00-00.pem"
	if err := os.WriteFile(filepath.Join(kubelet, "pki", dated), identity, 0o600); err != nil {
		return err
	}
	return os.Symlink(dated, filepath.Join(kubelet, "pki", filepath.Base(kubeletCertificate)))
}

// Where kubeadm puts a kubelet's identity.
const (
	kubeletKubeconfig  = "/etc/kubernetes/kubelet.conf"
	kubeletCA          = "/etc/kubernetes/pki/ca.crt"
	kubeletCertificate = "/var/lib/kubelet/pki/kubelet-client-current.pem"
)

// kubeletIdentity returns the kubeconfig of a machine's kubelet, and the certificate with its key for the file that the
// kubeconfig names.
func kubeletIdentity(name string, controlPlane *e2e.ControlPlane) (kubeconfig, certificate []byte, err error) {
	identity, err := controlPlane.CA.Client("system:node:"+name, "system:nodes")
	if err != nil {
		return nil, nil, err
	}
	access := controlPlane.AccessFrom(controlPlaneAddress, e2e.Identity{})
	access.CA, access.CAFile, access.CertFile, access.KeyFile = nil, kubeletCA, kubeletCertificate, kubeletCertificate
	kubeconfig, err = writeAccess(access)
	return kubeconfig, append(identity.Cert, identity.Key...), err
}

// writeAccess returns the content of a kubeconfig.
func writeAccess(access e2e.Access) ([]byte, error) {
	path, err := access.Write(os.Getenv("TMPDIR"))
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(filepath.Dir(path))
	return os.ReadFile(path)
}

// Journal returns the end of a unit's log, of this and former boots.
func (m *Machine) Journal(ctx context.Context, unit string) string {
	text, err := m.Run(ctx, "journalctl", "--no-pager", "-o", "short-precise", "-u", unit, "-n", "200")
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(text)
}
