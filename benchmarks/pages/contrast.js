// Visible text whose contrast with what is behind it falls short of WCAG 2 AA: [{text, ratio, wanted}].
() => {
  const parse = (text) => {
    const found = text.match(/rgba?\(([^)]+)\)/);
    if (!found) return [0, 0, 0, 0];
    const [r, g, b, a = 1] = found[1].split(/[ ,/]+/).map(Number);
    return [r, g, b, a];
  };
  const over = (top, below) => top.slice(0, 3).map((c, i) => c * top[3] + below[i] * (1 - top[3]));
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour[3] > 0) layers.push(colour);
      if (colour[3] === 1) break;
    }
    const dark = document.body.classList.contains("dark");
    return layers.reverse().reduce((below, top) => over(top, below), dark ? [11, 15, 25] : [255, 255, 255]);
  };
  const short = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim();
    const element = walker.currentNode.parentElement;
    if (!/[\p{L}\p{N}]/u.test(text) || !element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    if (["SCRIPT", "STYLE", "NOSCRIPT"].includes(element.tagName) || element.closest("[disabled], [aria-hidden=true]")) continue;
    const box = element.getBoundingClientRect();
    if (box.width < 2 || box.height < 2) continue;
    const style = getComputedStyle(element);
    const ground = behind(element);
    const ink = over(parse(element instanceof SVGElement ? style.fill : style.color), ground);
    const [high, low] = [luminance(ink), luminance(ground)].sort((a, b) => b - a);
    const ratio = (high + 0.05) / (low + 0.05);
    const size = parseFloat(style.fontSize);
    const wanted = size >= 24 || (size >= 18.66 && style.fontWeight >= 700) ? 3 : 4.5;
    if (ratio < wanted) short.push({ text: text.slice(0, 40), ratio: Math.round(ratio * 100) / 100, wanted });
  }
  return short;
}
