package machines

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
)

// writeImage writes an image that contains one static program, as an OCI archive.
func writeImage(program, path, name string) error {
	content, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	layer, err := archive(map[string][]byte{"workload": content}, 0o755)
	if err != nil {
		return err
	}
	type object = map[string]any
	blobs := map[string][]byte{}
	put := func(kind string, blob []byte) object {
		sum := sha256.Sum256(blob)
		digest := hex.EncodeToString(sum[:])
		blobs["blobs/sha256/"+digest] = blob
		return object{"mediaType": "application/vnd.oci.image." + kind, "digest": "sha256:" + digest, "size": len(blob)}
	}
	putJSON := func(kind string, value object) object {
		text, _ := json.Marshal(value)
		return put(kind, text)
	}
	layerOf := put("layer.v1.tar", layer)
	config := putJSON("config.v1+json", object{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": object{"Entrypoint": []string{"/workload"}},
		"rootfs": object{"type": "layers", "diff_ids": []any{layerOf["digest"]}},
	})
	manifest := putJSON("manifest.v1+json", object{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config,
		"layers": []any{layerOf},
	})
	manifest["annotations"] = object{"io.containerd.image.name": name, "org.opencontainers.image.ref.name": "1"}
	index, err := json.Marshal(object{"schemaVersion": 2, "manifests": []any{manifest}})
	if err != nil {
		return err
	}
	blobs["index.json"] = index
	blobs["oci-layout"] = []byte(`{"imageLayoutVersion":"1.0.0"}`)
	image, err := archive(blobs, 0o644)
	if err != nil {
		return err
	}
	// Writes another file and renames it, because other processes may be reading the existing one.
	temporary, err := os.CreateTemp(filepath.Dir(path), ".image-")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name())
	if _, err := temporary.Write(image); err != nil {
		return err
	}
	if err := temporary.Close(); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), path)
}

func archive(files map[string][]byte, mode int64) ([]byte, error) {
	var out bytes.Buffer
	writer := tar.NewWriter(&out)
	for name, content := range files {
		if err := writer.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(content))}); err != nil {
			return nil, err
		}
		if _, err := writer.Write(content); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), writer.Close()
}
