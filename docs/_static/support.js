// The support weights of one pixel, w = exp(-|d| / sigma_d - contrast / sigma_v), drawn as the reader moves it.
(function () {
  "use strict";
  const place = document.getElementById("support-figure");
  const data = window.supportData;
  if (!place || !data) return;

  const bytes = (text) => Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
  const { rows, columns } = data;
  const image = bytes(data.image);
  const depth = bytes(data.depth);
  const grey = Float64Array.from({ length: rows * columns }, (_, k) =>
    (image[3 * k] + image[3 * k + 1] + image[3 * k + 2]) / 765);
  const metres = Float64Array.from(depth, (value) => (value / 255) * data.metres);

  place.innerHTML = `
    <div class="support-pictures">
      <canvas class="support-scene" tabindex="0" role="application"
        aria-label="Cutout of the image. The arrow keys move the pixel whose weights are shown."></canvas>
      <canvas class="support-window" role="img" aria-label="Weights of the pixel's neighbours"></canvas>
    </div>
    <div class="support-controls">
      <label>contrast from
        <select name="source"><option value="image">the image</option><option value="depth">the true depth</option></select>
      </label>
      <label>window <select name="window"><option>3</option><option>5</option><option selected>7</option><option>11</option><option>15</option></select></label>
      <label>&sigma;<sub>d</sub> <input name="near" type="range" min="0.5" max="10" step="0.1" value="3"><output></output></label>
      <label>&sigma;<sub>v</sub> <input name="like" type="range" min="-2.3" max="0" step="0.05" value="-1.3"><output></output></label>
    </div>
    <p class="support-words" aria-live="polite"></p>`;
  const [scene, neighbours] = place.querySelectorAll("canvas");
  const words = place.querySelector(".support-words");
  const control = (name) => place.querySelector(`[name=${name}]`);
  const pixel = { row: 46, column: 62 };

  const scale = 4;
  scene.width = columns * scale;
  scene.height = rows * scale;
  const picture = document.createElement("canvas");
  picture.width = columns;
  picture.height = rows;
  const raw = new ImageData(columns, rows);
  for (let k = 0; k < rows * columns; k++) {
    raw.data.set([image[3 * k], image[3 * k + 1], image[3 * k + 2], 255], 4 * k);
  }
  picture.getContext("2d").putImageData(raw, 0, 0);

  // Perceptually ordered from dark to bright, so that it also reads in grey.
  const colour = (w) => {
    const stops = [[13, 8, 35], [87, 15, 109], [187, 55, 84], [249, 142, 8], [252, 254, 164]];
    const at = Math.min(0.9999, Math.max(0, w)) * 4;
    const k = Math.floor(at);
    return stops[k].map((low, n) => Math.round(low + (at - k) * (stops[k + 1][n] - low)));
  };

  function weights() {
    const radius = (Number(control("window").value) - 1) / 2;
    const map = control("source").value === "image" ? grey : metres;
    const near = Number(control("near").value);
    const like = 10 ** Number(control("like").value);
    const found = [];
    for (let dy = -radius; dy <= radius; dy++) {
      for (let dx = -radius; dx <= radius; dx++) {
        const row = pixel.row + dy;
        const column = pixel.column + dx;
        const inside = row >= 0 && row < rows && column >= 0 && column < columns;
        const contrast = inside ? Math.abs(map[row * columns + column] - map[pixel.row * columns + pixel.column]) : 0;
        const w = Math.exp(-Math.hypot(dy, dx) / near - contrast / like);
        found.push({ dy, dx, w: inside && (dy || dx) ? w : 0, inside });
      }
    }
    return { found, radius, near, like };
  }

  function draw() {
    const { found, radius, near, like } = weights();
    const side = 2 * radius + 1;
    const paint = scene.getContext("2d");
    paint.imageSmoothingEnabled = false;
    paint.drawImage(picture, 0, 0, scene.width, scene.height);
    paint.lineWidth = 2;
    paint.strokeStyle = "#ffffff";
    paint.strokeRect((pixel.column - radius) * scale - 1, (pixel.row - radius) * scale - 1, side * scale + 2, side * scale + 2);
    paint.fillStyle = "#ff2d55";
    paint.fillRect(pixel.column * scale, pixel.row * scale, scale, scale);

    neighbours.width = neighbours.height = scene.height;
    const cell = neighbours.width / side;
    const grid = neighbours.getContext("2d");
    let most = 0;
    let total = 0;
    for (const each of found) {
      const own = each.dy === 0 && each.dx === 0;
      const [r, g, b] = own ? [255, 45, 85] : colour(each.w);
      grid.fillStyle = each.inside ? `rgb(${r}, ${g}, ${b})` : "#808080";
      grid.fillRect((each.dx + radius) * cell, (each.dy + radius) * cell, cell + 0.5, cell + 0.5);
      most = Math.max(most, each.w);
      total += each.w;
    }
    for (const [name, value] of [["near", near.toFixed(1) + " px"], ["like", like.toFixed(like < 0.1 ? 3 : 2)]]) {
      control(name).nextElementSibling.textContent = value;
    }
    words.textContent = `Pixel ${pixel.column}, ${pixel.row}: depth ${metres[pixel.row * columns + pixel.column].toFixed(2)} m, ` +
      `largest weight ${most.toFixed(2)}, sum ${total.toFixed(1)} of ${side * side - 1} neighbours.`;
  }

  function move(row, column) {
    pixel.row = Math.min(rows - 1, Math.max(0, row));
    pixel.column = Math.min(columns - 1, Math.max(0, column));
    draw();
  }

  function point(event) {
    const box = scene.getBoundingClientRect();
    move(Math.floor(((event.clientY - box.top) / box.height) * rows), Math.floor(((event.clientX - box.left) / box.width) * columns));
  }

  scene.addEventListener("pointerdown", (event) => { scene.setPointerCapture(event.pointerId); point(event); });
  scene.addEventListener("pointermove", (event) => { if (event.pointerType === "mouse" || event.buttons) point(event); });
  scene.addEventListener("keydown", (event) => {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!step) return;
    event.preventDefault();
    move(pixel.row + step[0], pixel.column + step[1]);
  });
  place.querySelectorAll("select, input").forEach((each) => each.addEventListener("input", draw));
  draw();
})();
