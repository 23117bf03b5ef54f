// The entry of the page of one algorithm.

import { openPage } from "../common/open_page.mjs";
import { openAlgorithm } from "./algorithm.mjs";

await openPage((root, page, [scene]) => openAlgorithm(root, page, scene));
