// Pushes frames of this browser's camera to streams, until they end or the page is closed.
import { request } from "./api.js";

const WIDEST = 1280;
const cameras = new Map();  // id of the stream -> {media, timer}

export const hasCamera = Boolean(navigator.mediaDevices?.getUserMedia);

export function cameraOf(id) {
  return cameras.has(id);
}

export function stopCamera(id) {
  const camera = cameras.get(id);
  if (!camera) return;
  clearInterval(camera.timer);
  for (const track of camera.media.getTracks()) track.stop();
  cameras.delete(id);
}

// Resolves to the camera, once the user has allowed it.
export function openCamera() {
  return navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" } });
}

function frameOf(video) {
  const scale = Math.min(1, WIDEST / video.videoWidth);
  const canvas = document.createElement("canvas");
  canvas.width = Math.round(video.videoWidth * scale);
  canvas.height = Math.round(video.videoHeight * scale);
  canvas.getContext("2d").drawImage(video, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => { canvas.toBlob(resolve, "image/jpeg", 0.9); });
}

// One frame is under way at a time. A stream that is gone or paused ends it.
export async function pushCamera(id, media, fps) {
  const video = document.createElement("video");
  Object.assign(video, { srcObject: media, muted: true, playsInline: true });
  await video.play();
  let busy = false;
  const timer = setInterval(async () => {
    if (busy || video.videoWidth === 0) return;
    busy = true;
    try {
      const blob = await frameOf(video);
      if (cameras.has(id)) await request(`/v1/streams/${id}/frames`, { method: "POST", blob });
    } catch (fault) {
      if (fault.status === 404 || fault.status === 409) stopCamera(id);
    }
    busy = false;
  }, 1000 / fps);
  cameras.set(id, { media, timer });
}
