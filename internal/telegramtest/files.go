package telegramtest

import (
	"bytes"
	"fmt"
	"image"
	_ "image/gif" // formats that a photo can have
	_ "image/jpeg"
	_ "image/png"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
)

// Limits of files.
const (
	MaxUpload   = 50 << 20
	MaxDownload = 20 << 20
)

// file is the content behind a file_id.
type file struct {
	id            string
	name          string
	mime          string
	path          string
	data          []byte
	width, height int
}

func (f *file) view(kind string) FileView {
	v := FileView{FileID: f.id, FileUniqueID: "u" + f.id, FileSize: len(f.data)}
	switch kind {
	case "photo":
		v.Width, v.Height = f.width, f.height
	case "voice":
		v.MimeType, v.Duration = f.mime, 1
	default:
		v.FileName, v.MimeType = f.name, f.mime
	}
	return v
}

// store keeps a file under a fresh file_id. The caller holds mu.
func (s *Server) store(kind, name, mimeType string, data []byte) *file {
	name = path.Base(path.Clean("/" + strings.ReplaceAll(name, "\\", "/")))
	if mimeType == "" || mimeType == "application/octet-stream" {
		if guess := mime.TypeByExtension(path.Ext(name)); guess != "" {
			mimeType, _, _ = strings.Cut(guess, ";")
		}
	}
	number := strconv.Itoa(len(s.files) + 1)
	f := &file{
		id: fmt.Sprintf("AgAC%s%x", number, randomID()), name: name, mime: mimeType, data: data,
		path: kind + "s/file_" + number + path.Ext(name), width: 90, height: 90,
	}
	if size, _, err := image.DecodeConfig(bytes.NewReader(data)); err == nil {
		f.width, f.height = size.Width, size.Height
	}
	s.files[f.id] = f
	return f
}

func (c *call) sendDocument() (any, error) { return c.sendFile("document") }

func (c *call) sendPhoto() (any, error) { return c.sendFile("photo") }

func (c *call) sendFile(kind string) (any, error) {
	text, entities, err := c.caption()
	if err != nil {
		return nil, err
	}
	m, err := c.outgoing()
	if err != nil {
		return nil, err
	}
	f, err := c.given(kind)
	if err != nil {
		return nil, err
	}
	m.text, m.entities, m.media = text, entities, &media{kind: kind, file: f}
	return c.post(m)
}

// given is the file that a call sends: uploaded, attached under another name, or known by its file_id.
func (c *call) given(kind string) (*file, error) {
	up, ok := c.params.files[kind]
	value := c.params.values[kind]
	if name, attached := strings.CutPrefix(value, "attach://"); attached {
		up, ok = c.params.files[name]
	}
	if !ok {
		if value == "" {
			return nil, badRequest("there is no %s in the request", kind)
		}
		if f := c.s.files[value]; f != nil {
			return f, nil
		}
		return nil, badRequest("wrong file identifier/HTTP URL specified")
	}
	switch {
	case len(up.data) == 0:
		return nil, badRequest("file must be non-empty")
	case len(up.data) > MaxUpload:
		return nil, &refusal{code: http.StatusRequestEntityTooLarge, description: "Request Entity Too Large"}
	}
	if kind == "photo" {
		if _, _, err := image.DecodeConfig(bytes.NewReader(up.data)); err != nil {
			return nil, badRequest("IMAGE_PROCESS_FAILED")
		}
	}
	return c.s.store(kind, up.name, up.mime, up.data), nil
}

func (c *call) getFile() (any, error) {
	f := c.s.files[c.params.values["file_id"]]
	if f == nil {
		return nil, badRequest("invalid file_id")
	}
	if len(f.data) > MaxDownload {
		return nil, badRequest("file is too big")
	}
	return FileView{FileID: f.id, FileUniqueID: "u" + f.id, FileSize: len(f.data), FilePath: f.path}, nil
}

// serveFile serves what getFile named.
func (s *Server) serveFile(w http.ResponseWriter, r *http.Request) {
	token, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/file/bot"), "/")
	if token != s.token {
		reply(w, &refusal{code: http.StatusUnauthorized, description: "Unauthorized"})
		return
	}
	s.mu.Lock()
	var data []byte
	for _, f := range s.files {
		if f.path == name {
			data = f.data
		}
	}
	s.mu.Unlock()
	if data == nil {
		reply(w, &refusal{code: http.StatusNotFound, description: "Not Found"})
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = w.Write(data)
}
