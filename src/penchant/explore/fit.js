// Plots as high as the window lets them be: all in one row if there is room, none too flat to read.
const fit = () => {
  const rows = plots.length > 2 ? 2 : 1
  const high = innerWidth > 800 ? (innerHeight - 330) / rows : innerHeight * 0.42
  const height = Math.round(Math.max(290, Math.min(high, 620)))
  for (const plot of plots) {
    const root = document.querySelector(`[data-root-id="${plot.id}"]`)
    const wide = root.closest("figure").clientWidth
    const side = Math.max(180, Math.min(wide - 140, height - 40))  // beside axis and tools
    const square = plot.frame_width !== null
    const size = square ? {frame_width: side, frame_height: side} : {height: Math.min(height, wide)}
    plot.setv(size, {sync: false})
  }
}
addEventListener("resize", fit)
fit()
